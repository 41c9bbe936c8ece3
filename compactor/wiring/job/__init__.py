"""Puts the job together."""
