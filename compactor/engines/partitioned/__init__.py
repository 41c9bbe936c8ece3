"""Partitions any engine's staged rows as configured."""
