"""Erases rows, rejected lines and input on request."""
