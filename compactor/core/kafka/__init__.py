"""Ranges of Kafka partitions as input: their names, and the port of the brokers."""
