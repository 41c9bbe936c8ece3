"""Files of NDJSON: codecs, lines, inspection and rejects."""
