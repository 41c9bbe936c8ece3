"""Asks files of the compactor, and files of other writers with the same rows, the same questions."""
