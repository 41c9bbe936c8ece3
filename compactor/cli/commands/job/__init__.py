"""The commands of `compactor job`."""
