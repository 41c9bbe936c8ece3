"""The settings and ports of a process, and functions that build what it needs from them."""
