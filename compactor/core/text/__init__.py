"""Text: numbers, names from outside, and commands; for people and for programs."""
