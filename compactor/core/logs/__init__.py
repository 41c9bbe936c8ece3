"""Logs as input: the names of Kafka topics and Kinesis streams, and the port that reads them."""
