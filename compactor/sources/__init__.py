"""Turns input files into manifests: events, listings, claims."""
