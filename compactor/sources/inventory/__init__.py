"""Plans from an S3 Inventory: reads it completely, sorts its objects by date on disk, and releases manifests slowly."""
