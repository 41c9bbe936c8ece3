"""Whether there is a Java that Spark runs on. Needs the standard library alone, so that it can be asked before install.

`python -m compactor.ops.doctor.java` says what is wrong in one line, and ends with 2; it says nothing if all is well.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = (17, 21)
"""What Spark 4.1 is built and tested for."""

_EXPECTED = "17 or 21"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # up to Java 8 it was 1.8, since then 11, 17 and so on
_ANSWER_SECONDS = 60  # a cold start on a loaded machine takes a few


def major_version(text: str) -> int | None:
    """The feature release in what `java -version` prints, such as 17; None if it says none."""
    found = _VERSION.search(text)
    return int(found.group(1)) if found else None


@dataclass(frozen=True)
class Java:
    """What was found where Spark looks for Java.

    Attributes:
        fault: What is wrong with it; None if nothing is.
        program: The program that Spark would start; nothing if there is none.
        major: Its feature release, if it tells one.
    """

    fault: str | None
    program: str = ""
    major: int | None = None


def java_fault(env: Mapping[str, str]) -> str | None:
    """What is wrong with the Java that Spark would start; None if nothing is.

    Args:
        env: Environment variables. Spark takes `JAVA_HOME` first, then `java` on the `PATH`.
    """
    return look_for_java(env).fault


def look_for_java(env: Mapping[str, str], answer_seconds: float = _ANSWER_SECONDS) -> Java:
    """The Java that Spark would start, asked for its version.

    Args:
        env: Environment variables. Spark takes `JAVA_HOME` first, then `java` on the `PATH`.
        answer_seconds: How long to wait for its answer.
    """
    home = env.get("JAVA_HOME", "")
    found = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java", path=env.get("PATH"))
    if found is None and home:
        return Java(f"Java {_EXPECTED} is needed: JAVA_HOME is {home}, and there is no bin/java in it")
    if found is None:
        return Java(f"Java {_EXPECTED} is needed: no `java` on the PATH and no JAVA_HOME")
    try:
        answer = subprocess.run(  # noqa: S603 - the very program that Spark is about to start
            [found, "-version"], capture_output=True, text=True, errors="replace", timeout=answer_seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Java(f"Java {_EXPECTED} is needed: {found} cannot be run ({exc})", found)
    text = answer.stderr + answer.stdout
    return Java(version_fault(text, found), found, major_version(text))


def version_fault(text: str, program: str) -> str | None:
    """What is wrong with a Java that answers so; None if nothing is.

    Args:
        text: What `java -version` printed.
        program: Where it is.
    """
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
