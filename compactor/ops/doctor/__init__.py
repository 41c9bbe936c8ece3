"""Checks the compactor's environment, and gives the next action for each fault."""
