"""Puts together what a call on a folder needs."""
