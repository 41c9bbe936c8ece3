"""Merges small files of a table: chooses them, and writes their rows to files of the right size."""
