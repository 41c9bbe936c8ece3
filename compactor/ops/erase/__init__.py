"""Erases the rows, the rejected lines and the input of persons on request."""
