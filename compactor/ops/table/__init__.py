"""The output's table compared with the ledger: differences, and rebuilding a lost table."""
