"""A process's settings and ports, and functions that build its objects from them."""
