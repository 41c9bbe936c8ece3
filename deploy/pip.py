"""pip, run beside this Python."""

import os
import subprocess
import sys

from deploy.errors import PackagingError

EPOCH_SECONDS = "315532800"
"""1980, the oldest time that a zip can hold."""


def pip(*arguments: str) -> None:
    """Run pip, so that what it builds is the same at any time.

    Raises:
        PackagingError: With the last line of what it said.
    """
    command = (sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check")
    done = subprocess.run(  # noqa: S603 - no argument comes from outside
        command, capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH_SECONDS}
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise PackagingError(f"pip {arguments[0]} failed: {last}; expected a package index, or wheels in pip's cache")
