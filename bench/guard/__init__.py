"""Compares the CPU time of this tree with that of an earlier commit, in one run."""
