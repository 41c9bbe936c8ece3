"""The command line: one module a command, and what they share."""

from compactor.cli.entry import main

__all__ = ["main"]
