"""Reads lines of text as records, by a pattern of grok."""
