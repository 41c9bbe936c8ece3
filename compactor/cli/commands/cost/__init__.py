"""The commands of `compactor cost`."""
