"""Reads the arguments of a Glue job: where the settings are, and which of them are overridden. No I/O."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from compactor.core.errors import SettingsError
from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR

_KNOWN = re.compile(rf"--(CONFIG|STREAM|SHARD|{ENV_PREFIX}[^=]*)(=.*)?", re.DOTALL)


def job_arguments(argv: Sequence[str]) -> dict[str, str]:
    """The arguments that the compactor knows, by name, of `--NAME value` and `--NAME=value`.

    The first of `argv` is the script. Arguments of Glue are left out. What reads environment variables checks the
    names that begin with `COMPACTOR_`.

    Raises:
        SettingsError: `--CONFIG` is missing, an argument has no value, or one cannot be the name of a setting.
    """
    present = sorted({found[1] for text in argv[1:] if (found := _KNOWN.fullmatch(text))})
    faults = [
        f"--{name}: not the name of a setting -> expected --{ENV_PREFIX}<SECTION>{ENV_SEPARATOR}<KEY>"
        for name in present
        if name.startswith(ENV_PREFIX) and ENV_SEPARATOR not in name
    ]
    if "CONFIG" not in present:
        faults.append("--CONFIG: not among the job's arguments -> expected the place of the settings")
    if faults:
        raise SettingsError(faults)
    parser = _Parser(allow_abbrev=False, add_help=False)
    for name in present:
        parser.add_argument(f"--{name}", dest=name, required=True)
    return vars(parser.parse_known_args(argv[1:])[0])


def overriding(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments that override settings, by the names of the equivalent environment variables."""
    return {name: value for name, value in arguments.items() if name.startswith(ENV_PREFIX)}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError([f"arguments of the job: {message}"])
