"""Accepts that quarantined ranges of topics and streams are gone for good."""
