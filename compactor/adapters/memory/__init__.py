"""The ports in memory, for tests and simulations."""
