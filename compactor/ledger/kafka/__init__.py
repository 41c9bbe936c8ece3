"""The records of the ranges of Kafka partitions that were planned."""
