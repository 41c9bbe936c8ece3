"""Closes dates: sums up what is done and verified, so that commands need not read its records again."""
