"""Reads NDJSON files: codecs, lines, inspection and rejects."""
