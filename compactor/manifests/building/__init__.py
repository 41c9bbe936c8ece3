"""Turns announced files into manifests: the builder receives events, and the sealer closes parts that waited."""
