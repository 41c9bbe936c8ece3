"""Rebuilds the rows of committed manifests whose files are lost or damaged."""
