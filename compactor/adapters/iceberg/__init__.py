"""The adapter for Iceberg catalogs, the only importer of pyiceberg."""

from compactor.core.extras import need

need("iceberg")
