"""The check of Java: it reads every spelling of a version, and reports a fault in one line."""

from pathlib import Path

import pytest

from compactor.ops.doctor.java import java_fault, major_version, version_fault

ANSWERS = {
    'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)': 17,
    'openjdk version "21" 2023-09-19': 21,
    'openjdk version "21-ea" 2023-09-19': 21,
    'openjdk version "11.0.2" 2019-01-15': 11,
    'java version "1.8.0_392"\nJava(TM) SE Runtime Environment': 8,
    'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.9" 2023-10-17': 17,
    'openjdk version "25" 2025-09-16 LTS': 25,
    "The operation could not be completed. Unable to locate a Java Runtime.": None,
    "": None,
}


@pytest.mark.parametrize(("text", "major"), ANSWERS.items())
def test_versions(text: str, major: int | None) -> None:
    """The feature release is read from every spelling of a version."""
    assert major_version(text) == major


@pytest.mark.parametrize(("text", "major"), ANSWERS.items())
def test_only_17_and_21_will_do(text: str, major: int | None) -> None:
    """Java 17 and 21 are no fault; anything else is one, in one line that names what was found and expected."""
    fault = version_fault(text, "/usr/bin/java")
    if major in {17, 21}:
        assert fault is None
        return
    assert fault is not None
    assert "\n" not in fault
    assert "17 or 21" in fault
    assert (f"found Java {major}," in fault) if major else ("/usr/bin/java" in fault)


def program(folder: Path, text: str) -> Path:
    """A `java` that prints this answer."""
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    java.chmod(0o755)
    return java


def test_no_java(tmp_path: Path) -> None:
    """Without java on the PATH and JAVA_HOME the fault names both."""
    fault = java_fault({"PATH": str(tmp_path)})
    assert fault == "Java 17 or 21 is needed: no `java` on the PATH and no JAVA_HOME"


def test_java_home_without_java(tmp_path: Path) -> None:
    """The fault names a JAVA_HOME that does not exist, whatever is on the PATH: Spark would use it."""
    program(tmp_path / "good", 'openjdk version "17.0.9"')
    fault = java_fault({"PATH": f"{tmp_path / 'good'}:/usr/bin:/bin", "JAVA_HOME": "/nowhere"})
    assert fault is not None
    assert "/nowhere" in fault


def test_java_home_comes_first(tmp_path: Path) -> None:
    """If both are set, the Java of JAVA_HOME is checked, because Spark starts that one."""
    program(tmp_path / "old", 'java version "1.8.0_392"')
    program(tmp_path / "home" / "bin", 'openjdk version "21.0.1"')
    path = f"{tmp_path / 'old'}:/usr/bin:/bin"
    assert "found Java 8" in (java_fault({"PATH": path}) or "")
    assert java_fault({"PATH": path, "JAVA_HOME": str(tmp_path / "home")}) is None
