"""Prices, estimates and measured cost."""
