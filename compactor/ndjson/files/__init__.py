"""Reads whole files, retries refused reads, and writes their rejects."""
