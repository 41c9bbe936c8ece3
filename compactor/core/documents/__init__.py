"""The documents of ledger and manifests, and how they are read."""
