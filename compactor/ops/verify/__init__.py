"""Proves from the stored data that every line is where the ledger says, and reports every difference."""
