"""Reads arguments as Glue does: every one that is asked for is required, all others are ignored.

Until Glue 5.1 a shortened name counts as the argument that it begins; from 6.0 on it does not.
"""

import argparse
import os
from typing import NoReturn


class GlueArgumentError(Exception):
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise GlueArgumentError(message)


RESERVED = ("JOB_ID", "JOB_RUN_ID", "SECURITY_CONFIGURATION", "encryption-type", "enable-data-lineage")


def getResolvedOptions(args: list[str], options: list[str]) -> dict[str, str | None]:  # noqa: N802 - Glue's name
    taken = set(RESERVED) & set(options)
    if taken:
        raise RuntimeError(f"Using reserved arguments {taken}")
    parser = _Parser(allow_abbrev=os.environ.get("GLUE_VERSION", "6.0") < "6")
    for name in (*RESERVED, "job-bookmark-option", "continuation-option", "TempDir"):
        parser.add_argument(f"--{name}", required=False)
    for name in options:
        parser.add_argument(f"--{name}", required=True)
    return vars(parser.parse_known_args(args[1:])[0])
