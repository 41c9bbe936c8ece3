"""Partitions the staged rows of any engine as the settings say."""
