"""Text for people: numbers, names from outside, and commands."""
