"""The exit codes of commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    DONE = 0
    FAILED = 1  # try again, or see the log
    WRONG_USAGE = 2  # of the command, or of the settings
    NEEDS_OPERATOR = 3  # done, but an operator has to act
    INTERRUPTED = 130  # by Ctrl-C; what shells give for SIGINT
