"""Text: numbers, external names and commands, for people and for programs."""
