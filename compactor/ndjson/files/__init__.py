"""Reads whole files: opens them, reads them again, and keeps what their lines leave."""
