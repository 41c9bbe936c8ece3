"""Reads rejected lines, and tells what is wrong with each."""
