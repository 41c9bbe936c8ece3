"""Verifies the table of the output."""
