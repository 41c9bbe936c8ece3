"""Kinesis streams: what is there, and two ways of reading their shards."""
