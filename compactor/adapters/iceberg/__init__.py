"""The adapter for catalogs of Iceberg tables, which alone imports pyiceberg."""

from compactor.core.extras import need

need("iceberg")
