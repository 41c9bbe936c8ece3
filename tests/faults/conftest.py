"""Real processes on real folders: jobs that are killed, started twice, and looked at from outside."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.settings.toml import toml_of
from tests.faults.nursery import Nursery
from tests.protocol.tlc import missing
from tests.protocol.traces import Trace, fingerprint, recorded, strays
from tests.support.engines import NATIVE, engines_without_spark

ROOT = Path(__file__).resolve().parents[2]
DAY = "2025-12-21"
PATIENCE_SECONDS = 600.0


@dataclass
class Lake:
    """Folders of one job, the settings that name them, and what was put in."""

    folder: Path
    settings: dict[str, dict[str, object]]
    lines: list[str] = field(default_factory=list)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    program: tuple[str, ...] = ("-m", "compactor")  # what Python runs as the command line
    in_place: bool = False  # whether jobs without Spark write in place

    @property
    def config(self) -> Path:
        return self.folder / "compactor.toml"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def write_settings(self) -> None:
        self.config.write_text(toml_of(self.settings))

    def use_engine(self, name: str) -> None:
        """Have jobs on Spark use this engine from now on."""
        self.settings["convert"] = {"engine": name}
        self.write_settings()

    def add_files(self, name: str, *, files: int = 3, lines: int = 40, date: str = DAY) -> list[ManifestFile]:
        """Write some files, each with one bad line at its end; the last record of all has a key of its own."""
        named = []
        late_key = "late_" + name.replace("-", "_")
        for number in range(files):
            path = self.folder / "input" / f"{date}-{name}-{number}.ndjson"
            path.parent.mkdir(exist_ok=True)
            good = [f'{{"id":"{name}-{number}-{line}","n":{line}.10}}' for line in range(lines)]
            if number == files - 1:
                good[-1] = good[-1].replace("}", f',"{late_key}":"late"}}')
            self.lines += good
            path.write_text("\n".join([*good, "not json", ""]))
            named.append(ManifestFile(uri=str(path), size_bytes=path.stat().st_size))
        return named

    def add_manifest(self, manifest_id: str, *, files: int = 3, lines: int = 40, date: str = DAY) -> None:
        """Write some files and the manifest that names them."""
        named = self.add_files(manifest_id, files=files, lines=lines, date=date)
        manifest = Manifest(manifest_id=manifest_id, date=date, created_at="2025-12-21T10:00:00Z", files=tuple(named))
        folder = self.folder / "manifests"
        folder.mkdir(exist_ok=True)
        (folder / f".{manifest_id}.part").write_bytes(manifest.to_json())
        (folder / f".{manifest_id}.part").rename(folder / f"{manifest_id}.json")

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the command line in a process group of its own."""
        return self.start_process(
            [sys.executable, *self.program, "--config", str(self.config), *arguments], environment
        )

    def start_process(self, command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command to its end: its exit code and what it printed."""
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, output

    def restore(self, before: Path) -> None:
        """Make all as it was when the folder was copied, the times of files included."""
        shutil.rmtree(self.folder)
        shutil.copytree(before, self.folder)

    def output_lines(self) -> list[str]:
        """What the output holds, as the lines that were put in, sorted."""
        rows = [row for path in (self.folder / "output").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
        return sorted(_as_line(row) for row in rows)

    def assert_exact(self) -> None:
        """Every line is in the output once, every bad line in the rejects once, and nothing is left to do."""
        assert self.output_lines() == sorted(self.lines)
        rejects = [pq.read_table(path).num_rows for path in (self.state / "rejects").rglob("*.parquet")]
        inputs = list((self.folder / "input").iterdir())
        assert sum(rejects) == len(inputs)
        assert [path.name for path in (self.folder / "manifests").iterdir() if path.name[0] != "."] == ["_keep"]
        # What a killed process left of a temporary name, which is no object, or of its self-test is swept with age.
        left = [path for name in ("open", "staging") for path in (self.state / name).rglob("*") if path.is_file()]
        assert not [path for path in left if not path.name.startswith(".~") and "_self-test" not in path.parts]


def _as_line(row: Mapping[str, str | None]) -> str:
    known = {"id", "n", "file_date"}
    late = "".join(f',"{key}":"{text}"' for key, text in row.items() if key not in known and text is not None)
    return f'{{"id":"{row["id"]}","n":{row["n"]}{late}}}'


def wait_until(happened: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait for something that a process is about to do."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert process.poll() is None, f"ended too early: {process.communicate()[0]}"
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def kill_group(process: subprocess.Popen[str]) -> None:
    """`kill -9` the process, its JVM and its workers."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """An empty lake; whatever was started on it is ended."""
    made = Lake(
        tmp_path,
        {
            "paths": {name: str(tmp_path / name) for name in ("manifests", "output", "state")},
            "input": {"allowed_prefixes": [str(tmp_path / "input")]},
            "schema": {"metadata_columns": []},
            "stream": {"max_attempts": 50, "trigger_interval_seconds": 0.5},
            "metrics": {"sink": "none"},
            "spark": {"conf": {"spark.master": "local[2]"}},
        },
    )
    (tmp_path / "input").mkdir()
    made.write_settings()
    yield made
    for process in made.started:
        if process.poll() is None:
            kill_group(process)


@pytest.fixture
def two_manifests(lake: Lake) -> Lake:
    """A lake with two manifests to do."""
    lake.add_manifest("one")
    lake.add_manifest("two")
    return lake


COMPARED = bool(os.environ.get("COMPARE_TRACES"))
"""Whether the traces of all tests that leave one are compared with the model of the protocol, at the end."""

TRACES: dict[str, Trace] = {}
"""Those of this process, each once."""


def record_in(lake: Lake) -> tuple[str, ...]:
    """What has a plain job write down what the manifests of a lake go through."""
    return ("--record", str(lake.folder / f"{DAY}.jsonl")) if COMPARED else ()


def keep_traces(lake: Lake) -> None:
    """Keep what was written down for the comparison at the end."""
    if COMPARED:
        name = os.environ.get("PYTEST_CURRENT_TEST", "")
        for trace in recorded(name, lake.folder / f"{DAY}.jsonl"):
            TRACES[fingerprint(trace)] = trace


@pytest.fixture(scope="session", autouse=True)
def _compared_traces() -> Iterator[None]:
    """At the end of all tests, compare the traces that they left with the model."""
    yield
    if TRACES:
        assert not missing(), missing()
        assert strays(list(TRACES.values())) == []


@pytest.fixture(scope="session", params=engines_without_spark())
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    """Starts plain jobs in milliseconds."""
    with Nursery(request.param) as started:
        yield started


@pytest.fixture
def streaming(nursery: Nursery) -> Nursery:
    """Starts jobs whose engine writes staged files as they grow, as the native one does."""
    if nursery.engine != NATIVE:
        pytest.skip("the plain engine puts whole files")
    return nursery
