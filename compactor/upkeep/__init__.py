"""Tasks that a job repeats in addition to its manifests."""
