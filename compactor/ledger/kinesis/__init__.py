"""The records of what was landed of the shards of Kinesis streams."""
