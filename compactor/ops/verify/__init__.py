"""Proves from what is stored that every line is where the ledger says, and names every difference."""
