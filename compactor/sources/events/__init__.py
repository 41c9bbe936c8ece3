"""Turns announced files into manifests: the builder receives events, and the sealer seals pending parts."""
