"""Puts back what was set aside: dead letters, files, rejected lines."""
