"""What turns input files into manifests: events, listings, claims."""
