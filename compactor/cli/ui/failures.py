"""How a command ends: its exit code, and one line per error."""

import re
import sys
from collections.abc import Callable

import click

from compactor.cli.ui.terminal import echo
from compactor.core.errors import CompactorError, CredentialsMissing, ExitCode, ExtraMissing, SettingsError
from compactor.telemetry.error_text import described
from compactor.telemetry.log_events import CATALOGUE
from compactor.telemetry.logs import log_event


def confirm(command: str, what: str, *, question: str, done: str) -> None:
    """Ask for confirmation; if it is refused, the command ends. `done` is the cancelled action, as a participle."""
    if not is_terminal():
        say(f"{command}: {what} -> expected --yes: there is no terminal for a prompt")
        raise click.exceptions.Exit(ExitCode.WRONG_USAGE)
    if not click.confirm(question, err=True):
        say(f"nothing was {done}")
        raise click.exceptions.Exit(ExitCode.FAILED)


def is_terminal() -> bool:
    """Return whether stdin is a terminal, so a person can respond."""
    return sys.stdin.isatty()


__all__ = ["ExitCode", "exit_code_of", "say", "say_next"]

_FRAMES = re.compile(r"\n(?=\s)")


def say(message: str) -> None:
    """Print one line for the user on stderr, without Java's stack frames."""
    echo(f"compactor: {_FRAMES.split(message.strip())[0]}", err=True)


def say_next(move: str) -> None:
    """Print the next action on stderr, below the error."""
    echo(f"next: {move}", err=True)


def exit_code_of(work: Callable[[], ExitCode]) -> ExitCode:
    """Do a command's work, and return its exit code. Prints errors on stderr in one line, the next action below."""
    try:
        return work()
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise  # click handles each of them
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except SettingsError as exc:
        for fault in exc.faults:
            say(fault)
        if len(exc.faults) > 1:  # a single fault has its own expectation
            say_next(exc.next_move)
        return ExitCode.WRONG_USAGE
    except (ExtraMissing, CredentialsMissing) as exc:  # the message has the command that helps
        say(str(exc))
        return ExitCode.WRONG_USAGE if isinstance(exc, ExtraMissing) else ExitCode.FAILED
    except CompactorError as exc:
        say(str(exc))
        say_next(exc.next_move)
        return ExitCode.FAILED
    except Exception as exc:  # noqa: BLE001 - an unforeseen error, so the log gets all that is known
        context = click.get_current_context(silent=True)
        log_event("command.failed", command=context.command_path if context else "job", error=exc)
        say(f"unexpected {described(exc)}")
        say_next(CATALOGUE["command.failed"].next_move)
        return ExitCode.FAILED
