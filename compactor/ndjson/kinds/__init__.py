"""Recognises what a file is, and how its records are found."""
