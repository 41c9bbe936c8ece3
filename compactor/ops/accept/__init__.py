"""Gives up quarantined input: ranges of topics and streams that are gone for good, and files."""
