"""Makes the rows of committed manifests again, where their files are lost or damaged."""
