"""Measures a topic on a real broker through `plan` and `run`, beside Spark's Kafka source, on this machine."""
