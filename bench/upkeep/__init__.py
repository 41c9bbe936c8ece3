"""Measures what a commit to the table costs, and how large its metadata is, after few and after many commits."""
