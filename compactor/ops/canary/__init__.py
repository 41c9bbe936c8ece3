"""Checks a deployment with a file that passes through all of it."""
