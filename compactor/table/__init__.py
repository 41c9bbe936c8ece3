"""The table sink: a table is a projection of the ledger that takes its commits in numbered batches."""
