"""What the arguments of a Glue job say: where the settings are, and which of them are overridden. No I/O."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from compactor.core.errors import SettingsError
from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR

Resolve = Callable[[list[str], list[str]], Mapping[str, str | None]]
"""Finds the values of named arguments, all of which are there: `awsglue.utils.getResolvedOptions`, or `resolved`."""

_KNOWN = re.compile(rf"--(CONFIG|JOB_NAME|JOB_RUN_ID|{ENV_PREFIX}[A-Z]+{ENV_SEPARATOR}[A-Z_]+)(=.*)?", re.DOTALL)
_BY_GLUE = {"JOB_RUN_ID"}  # which Glue's own function takes for granted and refuses to be asked for


def job_arguments(argv: Sequence[str], resolve: Resolve) -> dict[str, str]:
    """The arguments of the job that mean something to the compactor, by name.

    Glue adds arguments of its own, and its function to read them takes every one that it is asked for as required: so
    only those that are there are asked for.

    Args:
        argv: Of the process, the script first.
        resolve: Reads them.

    Raises:
        SettingsError: `--CONFIG` is missing.
    """
    present = {found[1] for text in argv[1:] if (found := _KNOWN.fullmatch(text))}
    if "CONFIG" not in present:
        raise SettingsError(["--CONFIG: not among the job's arguments -> expected the place of the settings"])
    values = resolve(list(argv), sorted(present - _BY_GLUE))
    return {name: value for name in sorted(present) if (value := values.get(name)) is not None}


def overriding(arguments: Mapping[str, str]) -> dict[str, str]:
    """Those arguments that override settings, named as the environment variables that do the same."""
    return {name: value for name, value in arguments.items() if name.startswith(ENV_PREFIX)}


def resolved(argv: list[str], names: list[str]) -> dict[str, str | None]:
    """What Glue's own function gives, for where it is not there: `--NAME value` and `--NAME=value`.

    Raises:
        SettingsError: An argument has no value.
    """
    parser = _Parser(allow_abbrev=False, add_help=False)
    for name in [*names, *_BY_GLUE]:
        parser.add_argument(f"--{name}", dest=name, required=name in names)
    return vars(parser.parse_known_args(argv[1:])[0])


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError([f"arguments of the job: {message}"])
