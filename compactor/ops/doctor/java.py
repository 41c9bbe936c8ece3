"""Finds the Java that Spark would start. Needs only the standard library, so that it can run before install.

`python -m compactor.ops.doctor.java` prints a fault in one line and exits with 2, or prints nothing.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = (17, 21)  # the releases that Spark 4.1 is built and tested for

_EXPECTED = "17 or 21"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # up to Java 8 it was 1.8, since then 11, 17 and so on
_ANSWER_SECONDS = 60  # a cold start on a loaded machine takes a few


def major_version(text: str) -> int | None:
    """The feature release that `java -version` printed, such as 17; None if there is none."""
    found = _VERSION.search(text)
    return int(found.group(1)) if found else None


@dataclass(frozen=True)
class Java:
    """The Java that Spark would start."""

    fault: str | None  # what is wrong with it, or None
    program: str = ""  # its path; empty if there is none
    major: int | None = None  # its feature release, if it prints one


def java_fault(env: Mapping[str, str]) -> str | None:
    """What is wrong with the Java that Spark would start, or None."""
    return find_java(env).fault


def java_program(env: Mapping[str, str]) -> str | None:
    """The path of the Java that Spark would start, in `JAVA_HOME` or else on the `PATH`; None if there is none."""
    home = env.get("JAVA_HOME", "")
    return shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java", path=env.get("PATH"))


def find_java(env: Mapping[str, str], answer_seconds: float = _ANSWER_SECONDS) -> Java:
    """Find the Java that Spark would start, and ask for its version."""
    home, found = env.get("JAVA_HOME", ""), java_program(env)
    if found is None and home:
        return Java(f"Java {_EXPECTED} is needed: JAVA_HOME is {home}, and there is no bin/java in it")
    if found is None:
        return Java(f"Java {_EXPECTED} is needed: no `java` on the PATH and no JAVA_HOME")
    try:
        answer = subprocess.run(  # noqa: S603 - the program that Spark is about to start
            [found, "-version"], capture_output=True, text=True, errors="replace", timeout=answer_seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Java(f"Java {_EXPECTED} is needed: {found} cannot be run ({exc})", found)
    text = answer.stderr + answer.stdout
    return Java(version_fault(text, found), found, major_version(text))


def version_fault(text: str, program: str) -> str | None:
    """What is wrong with the Java whose `java -version` printed this text, or None."""
    major = major_version(text)
    if major in SUPPORTED:
        return None
    if major is None:
        first = next(iter(text.strip().splitlines()), "nothing")
        return f"Java {_EXPECTED} is needed: {program} -version answered {first!r}"
    return f"Java {_EXPECTED} is needed: found Java {major}, expected {_EXPECTED} ({program})"


if __name__ == "__main__":
    fault = java_fault(os.environ)
    if fault:
        sys.stderr.write(f"{fault}\n")
        sys.exit(2)
