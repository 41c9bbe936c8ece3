"""Stands in for the library that Glue brings, as far as the job uses it; what it is told goes to a file."""
