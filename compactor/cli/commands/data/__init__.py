"""The commands of `compactor data`."""
