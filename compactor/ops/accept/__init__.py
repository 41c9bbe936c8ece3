"""Accepts that quarantined ranges of topics are gone for good."""
