"""Searches shapes of input for one whose cost falls off a cliff."""
