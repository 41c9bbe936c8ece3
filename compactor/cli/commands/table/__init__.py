"""The commands of `compactor table`."""
