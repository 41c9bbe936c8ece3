"""Compares every value of the output with the input."""
