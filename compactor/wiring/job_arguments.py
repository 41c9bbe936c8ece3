"""Reads the arguments of a Glue job: where the settings are, and which of them are overridden. No I/O."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from compactor.core.errors import SettingsError
from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR

Resolve = Callable[[list[str], list[str]], Mapping[str, str | None]]
"""Finds the values of arguments that are present: `awsglue.utils.getResolvedOptions`, or `resolved`."""

_KNOWN = re.compile(rf"--(CONFIG|JOB_NAME|JOB_RUN_ID|{ENV_PREFIX}[A-Z]+{ENV_SEPARATOR}[A-Z_]+)(=.*)?", re.DOTALL)
_BY_GLUE = {"JOB_RUN_ID"}  # getResolvedOptions always returns it, and refuses its name


def job_arguments(argv: Sequence[str], resolve: Resolve) -> dict[str, str]:
    """The arguments that the compactor knows, by name. The first of `argv` is the script.

    Glue adds its own arguments, and `getResolvedOptions` fails for a name that is absent. So it is given only the names
    that are present.

    Raises:
        SettingsError: `--CONFIG` is missing.
    """
    present = {found[1] for text in argv[1:] if (found := _KNOWN.fullmatch(text))}
    if "CONFIG" not in present:
        raise SettingsError(["--CONFIG: not among the job's arguments -> expected the place of the settings"])
    values = resolve(list(argv), sorted(present - _BY_GLUE))
    return {name: value for name in sorted(present) if (value := values.get(name)) is not None}


def overriding(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments that override settings, by the names of the equivalent environment variables."""
    return {name: value for name, value in arguments.items() if name.startswith(ENV_PREFIX)}


def resolved(argv: list[str], names: list[str]) -> dict[str, str | None]:
    """Does what `getResolvedOptions` does, where Glue's library is missing: `--NAME value` and `--NAME=value`.

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
