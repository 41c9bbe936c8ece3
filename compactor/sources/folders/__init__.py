"""Plans the files in sources, whatever happened to them since the last call."""
