"""The adapters for Spark, the only importers of pyspark: the session, the engine, and the stream of manifests."""

from compactor.core.extras import need

need("spark")
