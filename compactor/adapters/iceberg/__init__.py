"""The adapter for catalogues of Iceberg tables, which alone imports pyiceberg."""

from compactor.core.extras import need

need("iceberg")
