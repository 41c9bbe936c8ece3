"""Plans manifests from an S3 Inventory: reads it whole, sorts its objects by date on disk, and releases them slowly."""
