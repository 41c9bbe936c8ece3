"""Writes settings: a first file, its comments, and TOML."""
