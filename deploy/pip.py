"""Runs the pip of this Python."""

import os
import subprocess
import sys

EPOCH_SECONDS = "315532800"
"""1980-01-01, the earliest time that a zip can hold."""


class PackagingError(Exception):
    """Something could not be packaged."""


def pip(*arguments: str) -> None:
    """Run pip with a fixed build time, so that equal sources make equal files.

    Raises:
        PackagingError: With the last line that pip printed.
    """
    command = (sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check")
    done = subprocess.run(  # noqa: S603 - no argument comes from outside
        command, capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH_SECONDS}
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise PackagingError(f"pip {arguments[0]} failed: {last}; expected a package index, or wheels in pip's cache")
