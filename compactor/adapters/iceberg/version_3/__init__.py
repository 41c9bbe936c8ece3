"""Version 3 of Iceberg's format, which pyiceberg reads and does not write: ids of rows, and variants."""
