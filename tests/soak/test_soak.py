"""The soak itself, for a few seconds with the plain engine, and that it would see what it looks for."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.layout import folder as as_folder
from compactor.ndjson.inspection import REASONS
from compactor.settings.settings import parse_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.faults.fault_rules import Call, FaultKind, FaultPlan, Operation
from tests.faults.s3_server import ROOT
from tests.soak.comparison import Comparison, compare
from tests.soak.feeder import Feeder
from tests.soak.files import MAX_LINE_BYTES, FileSpec, make_file
from tests.soak.phases import CALM, TROUBLE, phases
from tests.soak.supervisor import Ending, lives
from tests.soak.throughput import Span, Throughput, share, throughputs
from tests.soak.trouble import Expected, lasting_rules
from tests.soak.verification import verification
from tests.support.extras import NATIVE, VERSITYGW
from tests.support.fakes import PlainEngine
from tests.support.memory_store import MemoryClaims, MemoryStore

SEED = 20251221


class Fed:
    """A job in memory that was fed by a soak and has done all of it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.settings = parse_settings(
            {
                "paths": {name: f"/soak/{name}" for name in ("manifests", "output", "state")},
                "input": {"allowed_prefixes": ["/soak/input"], "max_line_bytes": MAX_LINE_BYTES},
                "schema": {"metadata_columns": []},
                "metrics": {"sink": "none"},
            }
        )
        listing = lambda source: iter(self.store.list(as_folder(source.folder)))  # noqa: E731
        app = App(self.settings, store=self.store, claims=MemoryClaims(), listing=listing, seen_file="")
        self.layout, self.ledger = app.layout, app.ledger
        self.feeder = Feeder(self.store, app, lambda: app, seed=SEED, for_spark=False, pause_seconds=0.0)
        for _ in range(25):
            self.feeder._step()
        streaming.service_on(
            app,
            PlainEngine(self.store, metadata_columns=self.settings.metadata_columns),
            ListedManifests(self.store, self.layout.manifests_folder),
        ).run(once=True)

    def compared(self) -> Comparison:
        return compare(self.store, self.layout, self.feeder.record)

    def files(self, folder: str) -> list[str]:
        return [info.uri for info in self.store.list(folder)]


@pytest.fixture(scope="module")
def job() -> Fed:
    return Fed()


def soaked(*words: str) -> str:
    """What a soak prints that finds nothing wrong."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--seed", str(SEED), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in ["lost +0", "doubled +0", "differences +0", "discrepancies by verify --deep +0", r"kills +[1-9]"]:
        assert re.search(rf"^{line}", done.stdout, re.MULTILINE), f"{line}: {done.stdout}"
    folder = re.search(r"in (/\S+)$", done.stdout, re.MULTILINE)
    assert folder is not None
    assert not Path(folder.group(1)).exists()
    return done.stdout


@pytest.mark.full
@pytest.mark.parametrize("place", ["local", pytest.param("s3", marks=VERSITYGW.needed)])
def test_a_short_soak_is_exact(place: str) -> None:
    """Fed, killed and disturbed for some seconds: nothing differs, and the table says what was done."""
    soaked("--minutes", "0.05", "--engine", "plain", "--place", place)


@NATIVE.needed
@pytest.mark.full
@pytest.mark.timeout(660)
def test_a_short_soak_of_all_phases_is_exact() -> None:
    """On Spark, beside objects that are denied or kill their workers, and through brown-outs: as exact as ever."""
    table = soaked("--minutes", "1", "--engine", "native", "--place", "s3")
    for line in [
        r"calm +\d+ lines/s",
        r"trouble +\d+ lines/s",
        "good dead letters +0",
        "dead letters .*forbidden [1-9].*retries_exhausted [1-9]",
        "denied files +[1-9]",
        "manifests not to be read +[1-9]",
        "faults .*access_denied [1-9].*killed_worker [1-9].*unknown_key [1-9]",
    ]:
        assert re.search(rf"^{line}", table, re.MULTILINE), f"{line}: {table}"


def test_everything_that_can_be_fed_comes_out_exact(job: Fed) -> None:
    """A job without disturbance leaves nothing to complain of, whatever kind of delivery there was."""
    assert len(job.feeder.record.events) >= 7
    found = job.compared()
    assert found.shown == []
    assert found.is_exact
    assert found.good_lines > 500
    assert found.bad_lines > 50


def test_a_replaced_file_has_another_content(job: Fed) -> None:
    """Else its versions are one, and `verify` would be right to call its second manifest a repetition."""
    versions = [job.feeder._next_versions() for _ in range(300)]
    assert all(make_file(first).stored != make_file(second).stored for first, second in versions)


def test_what_is_lost_doubled_or_changed_is_seen(job: Fed) -> None:
    """An output file that is gone, one that is there twice, and a changed dead letter each show in their place."""
    *_, output = (uri for uri in job.files(job.layout.output + "/"))  # the first one has columns and no rows
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


def test_the_throughput_is_that_of_honest_manifests_within_a_phase(job: Fed) -> None:
    """Commits outside of it do not count, nor do those of troubled manifests."""
    commits = [state.outcome for key in job.ledger.manifests() if (state := job.ledger.state(key)).outcome is not None]
    began = min(each.decided_at for each in commits)
    all_of_it = Span(CALM, began, began + timedelta(hours=1))
    first, before = throughputs(
        job.ledger, [all_of_it, replace(all_of_it, began=began - timedelta(1), ended=began)], {}
    )
    assert (before.manifests, before.lines, before.rate) == (0, 0, 0.0)
    assert first.lines == job.compared().good_lines
    assert first.rate == first.lines / 3600


@pytest.mark.parametrize(("lines", "seconds", "found"), [(700, 600, 0.7), (690, 600, 0.69), (10, 30, None)])
def test_trouble_may_take_a_share_of_the_throughput(lines: int, seconds: int, found: float | None) -> None:
    """It is judged where both phases took long enough to tell."""
    now = datetime.now(UTC)
    calm = Throughput(Span(CALM, now, now + timedelta(seconds=seconds)), 1, 1000, (), 0)
    trouble = replace(calm, span=replace(calm.span, name=TROUBLE), lines=lines)
    assert share([calm, trouble]) == pytest.approx(found)


def test_what_becomes_of_trouble_is_judged() -> None:
    """A denied file that is not quarantined, one too many, and a closed manifest that is gone each show."""
    found = {"discrepancies": [], "unfinished": 0, "quarantined_files": [{"uri": "a", "status": "forbidden"}]}
    expected = Expected(forbidden={"a"}, closed={"b"})
    assert verification(found, expected, 1).is_exact
    assert not verification(found, expected, 0).is_exact
    assert not verification({**found, "unfinished": 1}, expected, 1).is_exact
    assert not verification({**found, "quarantined_files": []}, expected, 1).is_exact
    assert not verification(found, Expected(closed={"b"}), 1).is_exact


def test_what_is_wrong_with_an_object_befalls_it_alone() -> None:
    """Reads of troubled input and manifests go wrong each time; writes, and all records of them, do not."""
    plan = FaultPlan(lasting_rules("s3://soak"))

    def fault(place: str, operation: Operation = Operation.GET_OBJECT) -> FaultKind | None:
        return plan.fault_for(Call(operation, f"soak/{place}"))

    for start, kind in (("denied-403", "access_denied"), ("denied-400", "unknown_key"), ("killer", "killed_worker")):
        assert [fault(f"input/trouble/{start}-1-1.ndjson") for _ in range(3)] == [FaultKind(kind)] * 3
    assert fault("manifests/closed-3.json", Operation.HEAD_OBJECT) is FaultKind.ACCESS_DENIED
    assert fault("manifests/closed-3.json", Operation.DELETE_OBJECTS) is None
    assert {fault(place) for place in ("manifests/troubled-1.json", "state/ledger/closed-3/killer-1")} == {None}


def test_the_phases_fill_the_time() -> None:
    """Wherever a soak takes place, and there is trouble only where there is an S3 to make it."""
    for engine in ("spark", "native", "plain"):
        for on_s3 in (True, False):
            chosen = phases(engine, on_s3=on_s3)
            assert sum(each.share for each in chosen) == pytest.approx(1.0)
            assert any(each.trouble_seconds for each in chosen) == on_s3


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
    assert reasons == REASONS.keys() - {"no_match", "match_too_costly", "no_records"}  # of text and envelopes


def test_lives_follow_from_the_seed() -> None:
    """The same seed gives the same lives, another one others; every ending comes."""

    def some(seed: int) -> list[object]:
        return list(islice(lives(seed, dict.fromkeys(Ending, 1), (1.0, 2.0)), 50))

    assert some(1) == some(1) != some(2)
    assert {life.ending for life in some(1)} == set(Ending)  # type: ignore[attr-defined]
