"""Asks before much is done."""

import sys

import click

from compactor.cli.ui.failures import say
from compactor.core.errors import ExitCode


def not_confirmed(command: str, what: str, *, question: str, done: str) -> ExitCode | None:
    """Ask for confirmation; returns the exit code if it is not given.

    Args:
        command: The command that asks.
        what: What it is about to work on.
        question: The prompt.
        done: What was not done without a confirmation, as a participle.
    """
    if not is_terminal():
        say(f"{command}: {what} -> expected --yes: there is no terminal for a prompt")
        return ExitCode.WRONG_USAGE
    if click.confirm(question, err=True):
        return None
    say(f"nothing was {done}")
    return ExitCode.FAILED


def is_terminal() -> bool:
    """Return whether stdin is a terminal, at which a person can answer."""
    return sys.stdin.isatty()
