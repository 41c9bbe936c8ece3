"""Deletes by age what is committed and done, and orphaned scratch files."""
