"""Measures what history and backlog cost."""
