"""The table sink: a table is a projection of the ledger, whose commits it takes in numbered batches."""
