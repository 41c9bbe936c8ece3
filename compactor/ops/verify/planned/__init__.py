"""What `verify` finds of planned manifests."""
