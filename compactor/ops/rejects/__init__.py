"""Reads rejected lines."""
