"""The ports on a local disk and on this machine."""
