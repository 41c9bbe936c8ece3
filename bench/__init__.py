"""Compares the speed of the compactor with that of its peers: `python -m bench`."""
