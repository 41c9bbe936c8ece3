"""Writes the lock files: `python -m tools.lock` resolves pyproject.toml with the uv beside this Python.

Versions stay as they are where the ranges allow it; `--upgrade` takes the newest.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy import ROOT
from deploy.locks import lock_file

_ANYWHERE = ("--universal", "--python-version", "3.11")
_ON_AWS = ("--python-version", "3.13", "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:")
_AS_TESTED = ("--constraint", "locks/development.txt")
_PROJECT = "pyproject.toml"


def _extras(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--extra", name))


CONTENTS = {
    "development": (*_ANYWHERE, _PROJECT, "--all-extras", "--group", "dev"),
    "base": (*_ANYWHERE, *_AS_TESTED, _PROJECT),
    "install": (*_ANYWHERE, *_AS_TESTED, _PROJECT, *_extras("report"), "--group", "build"),
    "install-spark": (*_ANYWHERE, *_AS_TESTED, _PROJECT, *_extras("report", "spark"), "--group", "build"),
    "job": (*_ON_AWS, *_AS_TESTED, _PROJECT, *_extras("aws", "iceberg", "kafka", "msk")),
    "functions": (*_ON_AWS, *_AS_TESTED, "--group", "functions"),
    "release": (*_ANYWHERE, "--group", "release"),
    "readers": (*_ANYWHERE, "--fork-strategy", "fewest", "--group", "readers"),
    "checkov": (*_ANYWHERE, "--fork-strategy", "fewest", "--group", "checkov"),
}
"""What each lock file holds, as options of `uv pip compile`. What is shipped has the versions of the tests."""

_FORM = ("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links")


def main(options: Sequence[str]) -> int:
    """Write all lock files; returns the exit code of uv."""
    uv = Path(sys.executable).with_name("uv")
    for name, content in CONTENTS.items():
        command = (str(uv), "pip", "compile", "--quiet", *_FORM, *content, *options, "--output-file")
        done = subprocess.run((*command, str(lock_file(name))), cwd=ROOT, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
