"""How manifests reach the work: from the stream, in a fair order, and onto slots."""
