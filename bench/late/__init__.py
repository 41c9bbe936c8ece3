"""Measures a table with late events before and after its small files are merged."""
