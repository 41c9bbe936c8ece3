"""How fast the compactor is beside its peers: one run, one table, ratios first. Start it as `python -m bench`."""
