"""Reads the figures of a report from the ledger."""
