"""Logs as input: topics of Kafka and streams of Kinesis by their names, and the port through which they are read."""
