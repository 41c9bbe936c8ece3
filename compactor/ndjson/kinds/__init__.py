"""Recognises a file's kind, and how its records are found."""
