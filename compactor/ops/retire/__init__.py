"""Retires dates: removes the rows, the rejects and the archive of closed dates, and puts on record that they expired."""
