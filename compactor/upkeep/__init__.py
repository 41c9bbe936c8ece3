"""Tasks that a job repeats beside its manifests."""
