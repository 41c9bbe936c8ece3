"""Kinesis streams as input: their names, the port, and aggregated records."""
