"""Checks everything around the compactor, and gives the next action for each fault."""
