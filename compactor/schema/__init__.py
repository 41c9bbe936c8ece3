"""Defines columns, their types, and the registry of schema versions."""
