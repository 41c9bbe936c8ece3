"""Checks everything that the compactor needs around it, and says of each fault what to do next."""
