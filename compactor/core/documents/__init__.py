"""The documents of ledger and manifests: their values, and how they are read."""
