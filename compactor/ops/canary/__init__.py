"""Checks a deployment by a file that goes through everything."""
