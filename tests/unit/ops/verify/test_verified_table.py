"""`verify` with a table: what it lists otherwise than the ledger is named; what waits for it in time is no fault."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import CrashPoint
from compactor.core.errors import ExtraMissing
from compactor.core.layout import ManifestKey
from compactor.ops.verify.report import VerifyResult
from compactor.ops.verify.table_files import unlisted
from compactor.ops.verify.verifier import Verifier
from compactor.table.catalog import TableFile, TableHead
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from tests.support.expiring import LATER_DAY, closed_days, compacted, expire
from tests.support.harness import DAY, GOOD, DiedError, Harness, dying_at, sink_of
from tests.support.memory_table import MemoryTable
from tests.support.meters import on_each
from tests.support.rebuilding import rebuild

LONG_SECONDS = 86_400
FOLDER = f"/w/output/merged-parquet-{DAY}/"

VERIFY: dict[str, Callable[[App], VerifyResult]] = {
    "all": lambda app: operating.verifier(app).verify_all(),
    "date": lambda app: operating.verifier(app).verify_date(DAY),
    "manifests": lambda app: operating.verifier(app).verify_manifests([ManifestKey(DAY, "m1"), ManifestKey(DAY, "m2")]),
    "deep": lambda app: operating.verifier(app, deep=True).verify_all(),
}


@pytest.fixture
def harness() -> Harness:
    """Two manifests, each of one file of two rows."""
    made = Harness(table={})
    for name in ("m1", "m2"):
        made.deliver(name, GOOD)
        made.run_once()
    return made


@pytest.fixture
def closed(harness: Harness) -> Harness:
    """The same, of a closed date."""
    harness.clock.advance(40 * LONG_SECONDS)
    assert operating.closer(harness.app()).close().summarised
    return harness


def listed(harness: Harness, *files: TableFile) -> None:
    """Have another program commit a snapshot with these files."""
    table = sink_of(harness)
    head = table.head()
    assert head is not None
    table._replace(head, files)


def found(harness: Harness, how: str = "all") -> list[tuple[str, str, str]]:
    """The manifest, the place and what was found of each discrepancy."""
    report = VERIFY[how](harness.app())
    assert report.needs_operator == bool(report.discrepancies)
    return [(each.manifest_id, each.where, each.found) for each in report.discrepancies]


@pytest.mark.parametrize("how", VERIFY)
def test_a_table_that_agrees(harness: Harness, how: str) -> None:
    """It is part of the report; also after another program has committed the same files."""
    sink_of(harness).rewrite()
    report = VERIFY[how](harness.app())
    assert report.table is not None
    shown = (report.table.name, report.table.files, report.table.rows, report.table.last_batch, report.table.error)
    assert shown == ("lake.events", 2, 4, 2, "")
    assert (report.table.waiting, report.table.waiting_seconds, report.discrepancies) == (0, None, [])


@pytest.mark.parametrize("how", VERIFY)
def test_what_strangers_did(harness: Harness, how: str) -> None:
    """A file that they removed, appended or counted anew is named, each as what it is, and nothing else."""
    first, second = sink_of(harness).live_files()
    listed(harness, first)
    assert found(harness, how) == [("m2", second.uri, "the table does not have the file")]
    listed(harness, first, replace(second, records=7))
    rows = f"in table lake.events: 7 rows, {second.size_bytes} bytes, {DAY}"
    assert found(harness, how) == [("m2", second.uri, rows)]
    listed(harness, first, replace(second, date="2024-02-29"))
    assert [each[:2] for each in found(harness, how)] == [("m2", second.uri)]
    listed(harness, first, second, second)
    assert found(harness, how) == [("", second.uri, "more than once")]
    listed(harness, first, second)
    assert found(harness, how) == []


@pytest.mark.parametrize("how", [each for each in VERIFY if each != "manifests"])
@pytest.mark.parametrize(
    "uri", [f"{FOLDER}stranger.parquet", f"{FOLDER}m9-00001.snappy.parquet", "/elsewhere/a.parquet"]
)
def test_a_file_of_strangers(harness: Harness, how: str, uri: str) -> None:
    """It is named whether or not its name is like those of manifests."""
    listed(harness, *sink_of(harness).live_files(), TableFile(uri, 1, 5, DAY))
    assert found(harness, how) == [("", uri, "5 rows in table lake.events")]


def test_a_file_of_strangers_under_another_date(harness: Harness) -> None:
    """One that lies in the folder of a date is of that date, whatever the table says."""
    uri = f"{FOLDER}stranger.parquet"
    listed(harness, *sink_of(harness).live_files(), TableFile(uri, 1, 5, "2024-02-29"))
    assert found(harness, "date") == [("", uri, "5 rows in table lake.events")]


def test_closed_dates_by_their_sums(closed: Harness) -> None:
    """If the sums agree, no record is read; if not, the files are found by the records."""
    first, second = sink_of(closed).live_files()
    report = operating.verifier(closed.app()).verify_all()
    assert (report.closed_dates, report.discrepancies) == (1, [])
    assert report.table is not None
    assert (report.table.files, report.table.rows) == (2, 4)
    listed(closed, first)
    assert found(closed) == [("m2", second.uri, "the table does not have the file")]
    listed(closed, first, replace(second, records=7))
    assert [each[:2] for each in found(closed)] == [("m2", second.uri)]
    stranger = TableFile(f"{FOLDER}stranger.parquet", 1, 5, DAY)
    listed(closed, first, second, stranger)
    assert [each[1] for each in found(closed)] == [stranger.uri]
    listed(closed, first, replace(second, uri=stranger.uri))
    assert sorted(each[1] for each in found(closed)) == sorted([second.uri, stranger.uri])


def test_a_catalog_that_fails_while_files_of_closed_dates_are_named(
    closed: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sums differ, and which files do is not known: the report says that the table was not compared."""
    table = sink_of(closed)
    first, second = table.live_files()
    listed(closed, first, replace(second, records=7))
    head, asked = MemoryTable.head, list[None]()

    def failing(self: MemoryTable) -> TableHead | None:
        asked.append(None)
        self.is_down = len(asked) > 1
        return head(self)

    monkeypatch.setattr(MemoryTable, "head", failing)
    report = operating.verifier(closed.app()).verify_all()
    assert len(asked) > 1
    assert report.table_error == "the catalog does not respond"


def test_late_manifests_of_closed_dates(closed: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """They count one by one, until a further summary has them; no other record is read for them."""
    closed.deliver("m3", GOOD)
    closed.run_once()
    with monkeypatch.context() as patch:
        patch.setattr(Verifier, "_table_of_dates", None)
        assert found(closed) == []
    files = list(sink_of(closed).live_files())
    listed(closed, *files[:2])
    assert found(closed) == [("m3", files[2].uri, "the table does not have the file")]


def test_what_waits_for_the_table(harness: Harness) -> None:
    """It is no discrepancy until it has waited for too long."""
    harness.deliver("m3", GOOD)
    source = ListedManifests(harness.store, harness.layout.manifests_folder)
    with suppress(DiedError):
        streaming.service_on(harness.app(on_crash_point=dying_at(CrashPoint.DECIDED)), harness.engine(), source).run(
            once=True
        )
    report = operating.verifier(harness.app()).verify_all()
    assert report.table is not None
    assert (report.table.waiting, report.unfinished, report.discrepancies) == (1, 1, [])
    harness.clock.advance(LONG_SECONDS)
    [late] = operating.verifier(harness.app()).verify_all().discrepancies
    assert (late.manifest_id, late.where) == ("m3", "lake.events")
    assert late.found == "1 manifest waits for the table, the first for 24 h"


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("how", [each for each in VERIFY if each != "manifests"])
def test_what_is_held_back(harness: Harness, how: str, *, is_down: bool) -> None:
    """It is a discrepancy at once, also while the catalog is down, and not among what waits; rebuilt, it is none."""
    table = sink_of(harness)
    table.exists = lambda uri: "/m3-" not in uri
    harness.deliver("m3", GOOD)
    assert [*harness.run_once().stuck] == ["m3"]
    table.is_down = is_down
    report = VERIFY[how](harness.app())
    assert report.table is not None
    assert (report.table.held, report.table.waiting, report.table.waiting_seconds) == (1, 0, None)
    [held] = report.discrepancies
    assert (held.manifest_id, held.where, held.expected) == ("m3", "lake.events", "its files in table lake.events")
    assert held.found.startswith("held back, because the catalog refuses it: ")
    harness.clock.advance(LONG_SECONDS)
    assert VERIFY[how](harness.app()).discrepancies == [held]
    table.is_down, table.exists = False, lambda _: True
    assert rebuild(harness, "m3").failed == ()
    assert VERIFY[how](harness.app()).discrepancies == []


def test_a_damaged_record_of_what_is_held_back(harness: Harness) -> None:
    """It is named, and all else is verified."""
    sink_of(harness).exists = lambda uri: "/m3-" not in uri
    harness.deliver("m3", GOOD)
    harness.run_once()
    uri = harness.layout.held(ManifestKey(DAY, "m3"))
    harness.store.put(uri, b"{")
    assert [each[:2] for each in found(harness)] == [("m3", uri)]


def test_what_is_rebuilt_while_it_is_verified(harness: Harness) -> None:
    """A generation that was held back and is replaced meanwhile is no discrepancy, and waits for nothing."""
    table, told = sink_of(harness), list[int]()
    table.exists = lambda uri: "/m3-" not in uri
    harness.deliver("m3", GOOD)
    harness.run_once()

    def replace_it() -> None:
        told.append(1)
        if len(told) == 3:
            table.exists = lambda _: True
            assert rebuild(harness, "m3").failed == ()

    report = operating.verifier(on_each(harness.app(), replace_it)).verify_all()
    assert report.table is not None
    assert (report.table.held, report.table.waiting, report.discrepancies) == (0, 0, [])


def test_a_catalog_that_cannot_be_read(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is verified, and the report says why the table was not."""
    sink_of(harness).is_down = True
    for how in VERIFY.values():
        report = how(harness.app())
        assert (report.manifests, report.discrepancies, report.needs_operator) == (2, [], False)
        assert report.table_error == "the catalog does not respond"
    sink_of(harness).is_down = False

    def missing(_: App) -> MemoryTable:
        raise ExtraMissing("not installed")

    monkeypatch.setattr(harness, "sink", None)
    monkeypatch.setattr(operating, "table_catalog", missing)
    assert operating.verifier(harness.app()).verify_all().table_error == "not installed"


def test_a_lost_table(harness: Harness) -> None:
    """One discrepancy, not one a file."""
    sink_of(harness).drop()
    assert found(harness) == [("", "lake.events", "no such table")]


def test_a_table_of_another_state(harness: Harness) -> None:
    """It is not compared with the wrong ledger without a word."""
    table = sink_of(harness)
    head = table.head()
    assert head is not None
    table._replace(replace(head, owner="/other/"), tuple(table.live_files()))
    assert found(harness) == [("", "lake.events", "a table of /other/")]


def test_beside_a_job(harness: Harness) -> None:
    """What it commits while the ledger is read is no discrepancy."""
    told = list[int]()

    def commit_more() -> None:
        if not told:
            told.append(1)
            harness.deliver("m3", GOOD)
            harness.run_once()

    for date in (None, DAY):
        told.clear()
        verifier = operating.verifier(on_each(harness.app(), commit_more))
        report = verifier.verify_all() if date is None else verifier.verify_date(date)
        assert report.discrepancies == []


@pytest.mark.parametrize("step", [CrashPoint.DECIDED, CrashPoint.PUBLISHED])
@pytest.mark.parametrize("how", VERIFY)
def test_an_open_rebuild(harness: Harness, step: CrashPoint, how: str) -> None:
    """Until it is done, the table may have the files of before."""
    before = {file.uri for file in sink_of(harness).live_files()}
    with suppress(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(step))
    assert {file.uri for file in sink_of(harness).live_files()} == before
    report = VERIFY[how](harness.app())
    assert report.table is not None
    assert (report.table.waiting, report.discrepancies) == (1, [])


def test_beside_a_rebuild(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a rebuild replaces between a reading of the ledger and one of the table is no discrepancy."""
    table, head = sink_of(harness), sink_of(harness).head
    first, second = table.live_files()
    listed(harness, second)  # so that m1 is in doubt, and looked up once more
    calls = list[int]()

    def rebuilt() -> TableHead | None:
        calls.append(1)
        if len(calls) == 2:
            listed(harness, first, second)
            assert rebuild(harness, "m1", force=True).failed == ()
        return head()

    monkeypatch.setattr(MemoryTable, "head", lambda _: rebuilt())
    assert found(harness) == []


def test_what_expired_before_the_table() -> None:
    """Its rows expired, so they are missing in no table."""
    plain = closed_days()
    expire(plain)
    harness = Harness(table={}, store=plain.store)
    harness.clock.advance((plain.clock.now() - harness.clock.now()).total_seconds())
    compacted(harness, "m4", LATER_DAY)
    assert {each[0] for each in found(harness)} == {"m3"}


def test_without_a_table() -> None:
    """Nothing is said of any."""
    plain = Harness()
    plain.deliver("m1", GOOD)
    plain.run_once()
    assert operating.verifier(plain.app()).verify_all().table is None


def test_what_is_done_since_it_was_read(harness: Harness) -> None:
    """It does not wait, however long the verification takes."""
    app, commit = harness.app(), harness.commit("m1")
    assert operating.listed_table(app) is not None
    assert unlisted(app.state, operating.listed_table(app), commit) is False
    harness.store.delete([harness.layout.done(commit.key)])
    assert unlisted(app.state, operating.listed_table(app), commit) is True
