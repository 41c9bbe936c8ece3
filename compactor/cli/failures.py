"""How a command ends: exit codes, and one clear line for whatever went wrong."""

import sys
from collections.abc import Callable
from enum import IntEnum

import click

from compactor.errors import CompactorError, SettingsError
from compactor.logs import LOGGER


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    DONE = 0
    FAILED = 1  # try again, or look at the log
    WRONG_USAGE = 2  # of the command, or of the settings
    NEEDS_OPERATOR = 3  # done, but somebody has to look
    INTERRUPTED = 130  # by Ctrl-C; what shells give for SIGINT


def say(message: str) -> None:
    """Tell the user something on stderr, in one line."""
    lines = (line.strip() for line in message.splitlines())
    click.echo(f"compactor: {next(filter(None, lines), message)}", err=True)


def exit_code_of(work: Callable[[], ExitCode]) -> ExitCode:
    """Do a command's work; an error becomes a line on stderr and an exit code.

    Args:
        work: Returns the code of a normal end.
    """
    try:
        return work()
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click has an end for each of them
    except KeyboardInterrupt:
        say("interrupted")
        return ExitCode.INTERRUPTED
    except SettingsError as exc:
        for fault in exc.faults:
            say(fault)
        return ExitCode.WRONG_USAGE
    except CompactorError as exc:
        say(str(exc))
        return ExitCode.FAILED
    except Exception as exc:  # noqa: BLE001 - nobody foresaw it, so all that is known has to be told
        LOGGER.error("command.failed", exc_info=True, extra={"fields": {"arguments": sys.argv[1:]}})
        say(f"unexpected {type(exc).__name__}: {exc}")
        return ExitCode.FAILED
