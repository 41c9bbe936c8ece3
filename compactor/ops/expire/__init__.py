"""Expires dates: removes rows, rejects and archive of closed dates, and records that they expired."""
