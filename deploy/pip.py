"""Runs the pip of this Python."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EPOCH_SECONDS = "315532800"
"""1980-01-01, the earliest time that a zip can hold."""


class PackagingError(Exception):
    """Something could not be packaged."""


def pip(*arguments: str, log: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run pip with a fixed build time, so that equal sources make equal files.

    Args:
        arguments: The command of pip and its options.
        log: A file for all that pip and what it starts print.
        env: The environment variables; those of this process if not given.

    Raises:
        PackagingError: With the last line that pip printed, or the log.
    """
    logged = () if log is None else ("--log", str(log))
    command = (sys.executable, "-m", "pip", *arguments, *logged, "--quiet", "--disable-pip-version-check")
    if log is not None:
        log.unlink(missing_ok=True)  # pip would append to it
    done = subprocess.run(  # noqa: S603 - no argument comes from outside
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**(os.environ if env is None else env), "SOURCE_DATE_EPOCH": EPOCH_SECONDS},
    )
    if not done.returncode:
        return
    if log is not None:
        raise PackagingError(f"pip {arguments[0]} failed, see {log}")
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    raise PackagingError(f"pip {arguments[0]} failed: {last}; expected a package index, or wheels in pip's cache")
