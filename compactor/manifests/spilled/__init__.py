"""Plans files that are sorted by date on disk, so that memory does not grow with their number."""
