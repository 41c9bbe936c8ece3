"""Detects the job's problems and their severity. Decisions, no I/O."""
