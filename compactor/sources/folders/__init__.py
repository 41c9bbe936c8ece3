"""Plans the files of sources, whatever happened to them since the last call."""
