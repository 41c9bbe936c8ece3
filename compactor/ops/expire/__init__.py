"""Expires dates: removes rows, rejects and archive of closed dates, and puts on record that they expired."""
