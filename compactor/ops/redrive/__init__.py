"""Redrives dead letters, quarantined files and rejected lines."""
