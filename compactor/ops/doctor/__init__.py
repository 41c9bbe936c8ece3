"""Looks at everything the compactor needs around it, and says of each whether it is there or what to do next."""
