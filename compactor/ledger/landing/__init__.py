"""The records of what was landed of logs: chains of links, notes, and what they give to manifests."""
