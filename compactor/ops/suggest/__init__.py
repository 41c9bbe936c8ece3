"""Reads a sample of the input, or all of it, to suggest the types of columns."""
