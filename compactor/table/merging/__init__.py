"""Merges small files of a table: chooses them, and writes their rows to right-sized files."""
