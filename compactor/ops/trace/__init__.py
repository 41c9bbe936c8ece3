"""Tells where a file, a manifest or an output is, and how it came there."""
