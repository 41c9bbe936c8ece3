"""The commands of `compactor schema`."""
