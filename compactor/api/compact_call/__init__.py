"""One call of `compact`: its steps, and how it ended."""
