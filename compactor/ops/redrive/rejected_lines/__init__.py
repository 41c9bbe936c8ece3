"""Rejected lines that would be rows now."""
