"""The ports in memory."""
