"""Divides the staged rows of any engine into the partitions that the settings name."""
