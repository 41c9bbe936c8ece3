"""The two programs that are compared, and one run of either: `compactor compact`, from start to verified files."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]

_WHERE = "import compactor, compactor_native; print(compactor.__file__, compactor_native.__file__, sep='\\n')"


@dataclass(frozen=True, slots=True)
class Program:
    """A tree of the product.

    Attributes:
        folder: Python finds the product here before anywhere else.
        variables: What else its process sees, before all other variables.
    """

    name: str
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> Mapping[str, str]:
        """What its process sees."""
        return {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1", **self.variables}

    def modules(self, work: Path) -> list[Path]:
        """Where it has its code and its kernel from.

        Raises:
            RuntimeError: One of them is not installed.
        """
        command = [sys.executable, "-c", _WHERE]
        found = subprocess.run(command, cwd=work, env=self.environment(), capture_output=True, text=True, check=False)
        if found.returncode:
            raise RuntimeError(f"{self.name}: {found.stderr.strip()[-300:]}; `make dev` builds the native engine")
        return [Path(line) for line in found.stdout.splitlines()]

    def cpu_seconds(self, source: Path, rows: int, work: Path, *options: str) -> float:
        """Compact a folder into an empty one, and delete the output.

        Args:
            source: The input.
            rows: How many rows it makes.
            work: A folder for the output.
            options: Further options of the command.

        Returns:
            What the process and its children took, in user and kernel mode.

        Raises:
            RuntimeError: It failed, or made another number of rows.
        """
        output = work / "output"
        log = work / f"{self.name}.log"
        command = [sys.executable, "-m", "compactor", "compact", str(source), str(output)]
        command += ["--state", str(work / "state"), *options]
        try:
            with log.open("wb") as file:
                process = subprocess.Popen(
                    command, cwd=work, env=self.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file
                )
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise RuntimeError(f"{self.name}: exit code {process.returncode}: {log.read_text()[-500:].strip()}")
            written = sum(pq.read_metadata(file).num_rows for file in output.rglob("*.parquet"))
            if written != rows:
                raise RuntimeError(f"{self.name}: {source} made {written:,} rows, expected {rows:,}")
            return used.ru_utime + used.ru_stime
        finally:
            for folder in (output, work / "state"):
                shutil.rmtree(folder, ignore_errors=True)


def check_apart(old: Program, new: Program, work: Path) -> None:
    """Make sure that each program runs its own code and its own kernel.

    Raises:
        RuntimeError: One of them would run what belongs to the other.
    """
    if strange := [path for path in old.modules(work) if not path.is_relative_to(old.folder)]:
        raise RuntimeError(f"{old.name}: {strange[0]}; expected a file in {old.folder}")
    code, kernel = new.modules(work)
    if not code.is_relative_to(new.folder) or kernel.is_relative_to(old.folder):
        raise RuntimeError(f"{new.name}: {code} and {kernel}; expected code in {new.folder}, and its own kernel")
