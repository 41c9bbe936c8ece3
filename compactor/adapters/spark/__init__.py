"""The adapters for Spark, which alone import pyspark: the session, the engine, and the stream of manifests."""

from compactor.core.extras import need

need("spark")
