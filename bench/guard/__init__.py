"""Compares the CPU time of this tree with that of the release before, in one run."""
