"""Records of the chains of partitions and shards."""
