"""Shows where a file, a manifest or an output is."""
