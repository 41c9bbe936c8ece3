"""The Spark adapters, the only importers of pyspark: the session, the engine, and the manifest stream."""

from compactor.core.extras import need

need("spark")
