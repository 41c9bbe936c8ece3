"""The soak itself, for a few seconds with the plain engine; and that it would see what it looks for."""

import io
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.memory.store import MemoryClaims, MemoryStore
from compactor.ndjson.inspection import REASONS
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from tests.faults.s3_server import ROOT
from tests.soak.comparison import Comparison, compare
from tests.soak.feeder import Feeder
from tests.soak.files import MAX_LINE_BYTES, FileSpec, make_file
from tests.soak.supervisor import Ending, lives
from tests.support.fakes import PlainEngine

SEED = 20251221


class Fed:
    """A job in memory that was fed by a soak and has done all of it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.settings = parse_settings(
            {
                "paths": {name: f"/soak/{name}" for name in ("manifests", "output", "state")},
                "input": {"allowed_prefixes": ["/soak/input"], "max_line_bytes": MAX_LINE_BYTES},
                "metrics": {"sink": "none"},
            }
        )
        app = App(self.settings, store=self.store, claims=MemoryClaims())
        self.layout = app.layout
        self.feeder = Feeder(self.store, app, lambda: app, seed=SEED, for_spark=False, pause_seconds=0.0)
        for _ in range(25):
            self.feeder._step()
        app.service_on(PlainEngine(self.store), ListedManifests(self.store, self.layout.manifests_folder)).run(
            once=True
        )

    def compared(self) -> Comparison:
        return compare(self.store, self.layout, self.feeder.record)

    def files(self, folder: str) -> list[str]:
        return [info.uri for info in self.store.list(folder)]


@pytest.fixture(scope="module")
def job() -> Fed:
    return Fed()


def test_a_short_soak_is_exact() -> None:
    """Fed, killed and disturbed for some seconds: nothing differs, and the table says what was done."""
    words = ["--minutes", "0.15", "--seed", str(SEED), "--engine", "plain"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *words], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ["lost +0", "doubled +0", "differences +0", "discrepancies by verify --deep +0", r"kills +[1-9]"]:
        assert re.search(rf"^{line}", done.stdout, re.MULTILINE), f"{line}: {done.stdout}"
    folder = re.search(r"in (/\S+)$", done.stdout, re.MULTILINE)
    assert folder is not None
    assert not Path(folder.group(1)).exists()


def test_everything_that_can_be_fed_comes_out_exact(job: Fed) -> None:
    """A job without disturbance leaves nothing to complain of, whatever kind of delivery there was."""
    assert len(job.feeder.record.events) >= 7
    found = job.compared()
    assert found.shown == []
    assert found.is_exact
    assert found.good_lines > 500
    assert found.bad_lines > 50


def test_what_is_lost_doubled_or_changed_is_seen(job: Fed) -> None:
    """An output file that is gone, one that is there twice, and a changed dead letter each show in their place."""
    output, *_ = (uri for uri in job.files(job.layout.output + "/"))
    rejects, *_ = (uri for uri in job.files(job.layout.rejects_folder))
    for uri in (output, rejects):
        data = job.store.read(uri)
        job.store.put(f"{uri}-again.parquet", data)
        assert job.compared().doubled > 0
        job.store.delete([f"{uri}-again.parquet", uri])
        assert job.compared().lost > 0
        job.store.put(uri, data)
        assert job.compared().is_exact
    letter = next(uri for uri in job.files(job.layout.failed_folder) if uri.endswith(".reason.json"))
    data = job.store.read(letter)
    job.store.delete([letter])
    assert job.compared().differences == 1
    job.store.put(letter, data)


def test_values_that_were_changed_are_seen(job: Fed) -> None:
    """A row or a reject that is not what was fed is a difference."""
    for folder, column in ((job.layout.output + "/", "note"), (job.layout.rejects_folder, "reason")):
        uri = next(uri for uri in job.files(folder) if pq.read_table(io.BytesIO(job.store.read(uri))).num_rows)
        data = job.store.read(uri)
        table = pq.read_table(io.BytesIO(data))
        changed = pa.array(["changed", *table[column].to_pylist()[1:]])
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(table.column_names.index(column), column, changed), sink)
        job.store.put(uri, sink.getvalue().to_pybytes())
        assert job.compared().differences == 1
        job.store.put(uri, data)


def test_a_file_is_the_same_each_time() -> None:
    """What a file holds follows from its seed and number; its bad lines, of every kind, are where it says."""
    reasons: set[str] = set()
    for number in range(150):
        spec = FileSpec(SEED, number, for_spark=True)
        made = make_file(spec)
        assert made == make_file(spec)
        reasons.update(bad.reason for bad in made.bad.values())
        if not made.stored.startswith(b"\x1f\x8b"):
            assert all(made.stored[bad.offset :].startswith(bad.raw) for bad in made.bad.values())
    assert reasons == set(REASONS)


def test_lives_follow_from_the_seed() -> None:
    """The same seed gives the same lives, another one others; every ending comes."""

    def some(seed: int) -> list[object]:
        return list(islice(lives(seed, dict.fromkeys(Ending, 1), (1.0, 2.0)), 50))

    assert some(1) == some(1) != some(2)
    assert {life.ending for life in some(1)} == set(Ending)  # type: ignore[attr-defined]
