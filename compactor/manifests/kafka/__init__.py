"""Plans ranges of Kafka partitions: each offset in exactly one manifest, also after a crash or with two planners."""
