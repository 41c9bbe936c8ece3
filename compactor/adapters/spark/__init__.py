"""The only importers of pyspark: the session, the engine that converts on it, and the stream of manifests."""
