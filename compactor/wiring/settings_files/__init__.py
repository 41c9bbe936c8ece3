"""Finds and reads settings."""
