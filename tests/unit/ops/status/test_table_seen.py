"""`status` with a table: what waits for it, the last batch, and why commits fail, without asking the catalog."""

from dataclasses import replace
from datetime import timedelta

import pytest

from compactor.cli.commands.report import make_report
from compactor.cli.ui.status_screen import screen
from compactor.cli.ui.words import table_lines
from compactor.control.diagnosis.health import Condition
from compactor.core.documents.table_records import BatchedManifest
from compactor.core.errors import StoreUnavailable, TableHeldBack
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectStore
from compactor.cost.prices import CLASSIC
from compactor.job.report import ManifestsUnfinished
from compactor.ledger.table.progress import ProgressNotes
from compactor.ops.report.period import Period
from compactor.ops.report.report import Report
from compactor.ops.status.values import Status
from compactor.settings.settings import Settings
from compactor.table.standing import MANY_FAILURES, TableSeen
from compactor.wiring import operating
from tests.support.harness import DAY, GOOD, Harness, sink_of
from tests.support.rebuilding import rebuild

pytestmark = pytest.mark.usefixtures("short_commit_pauses")


@pytest.fixture
def harness() -> Harness:
    return Harness(table={})


def status(harness: Harness) -> Status:
    return operating.status_reader(harness.app()).read()


def table_of(harness: Harness) -> TableSeen:
    found = status(harness).table
    assert found is not None
    return found


def sharded(harness: Harness, shards: int) -> Settings:
    """The settings with so many jobs."""
    return replace(harness.settings, control=harness.settings.control.model_copy(update={"shards": shards}))


def named(manifests: int) -> list[BatchedManifest]:
    return [BatchedManifest(date=DAY, manifest_id=f"m{number}") for number in range(manifests)]


def run_in_vain(harness: Harness) -> None:
    sink_of(harness).is_down = True
    with pytest.raises(ManifestsUnfinished):
        harness.run_once()


def test_before_the_first_commit(harness: Harness) -> None:
    """There is a table, and nothing is known of it; without a setting there is none."""
    assert table_of(harness) == TableSeen("lake.events", late_seconds=table_of(harness).late_seconds)
    assert status(Harness()).table is None


def test_a_table_that_takes_all(harness: Harness) -> None:
    """It says up to which batch, and when; the catalog may be away by then."""
    for name in ("m1", "m2"):
        harness.deliver(name, GOOD)
        harness.run_once()
    sink_of(harness).is_down = True
    harness.clock.advance(600)
    found = status(harness)
    assert found.table is not None
    assert (found.table.last_batch, found.table.waiting, found.table.failures, found.table.error) == (2, 0, 0, "")
    shown = screen(found).plain
    assert "table     lake.events: up to batch 2, 10 min ago" in shown
    assert "          no manifest waits for the table" in shown


def test_a_catalog_that_is_down(harness: Harness) -> None:
    """What waits, for how long, and why; a later run goes on counting, and one that gets through starts anew."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    harness.deliver("m2", GOOD)
    run_in_vain(harness)
    harness.clock.advance(600)
    found = table_of(harness)
    assert (found.waiting, found.waiting_seconds, found.last_batch) == (1, 600.0, 1)
    assert (found.failures >= MANY_FAILURES, found.error) == (True, "the catalog does not respond")
    seen = status(harness)
    assert seen.state.condition is Condition.NO_HEARTBEAT  # no job is there that could go on
    assert (
        f"1 manifest waits for the table, the first for 10 min; {found.failures} commits failed" in screen(seen).plain
    )
    run_in_vain(harness)
    assert table_of(harness).failures > found.failures
    sink_of(harness).is_down = False
    harness.run_once()
    healed = table_of(harness)
    assert (healed.waiting, healed.failures, healed.error, healed.last_batch) == (0, 0, "", 2)


def test_the_condition(harness: Harness) -> None:
    """While a job runs, a table that is behind is the state, until it is not."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    app = harness.app()
    notes = ProgressNotes(app.state, "run", 1)
    with app.heartbeat:
        assert status(harness).state.condition is Condition.IDLE
        for number in range(1, MANY_FAILURES + 1):
            notes.failed("it refuses", named(1), harness.clock.now())
            is_behind = status(harness).state.condition is Condition.TABLE_BEHIND
            assert is_behind == (number == MANY_FAILURES)
        reason = status(harness).state.reason
        assert reason.startswith("table lake.events: 1 manifest waits for the table")
        assert reason.endswith(f"{MANY_FAILURES} commits failed in a row: it refuses")
        notes.committed(2, named(1), harness.clock.now())
        assert status(harness).state.condition is Condition.IDLE
    harness.clock.advance(7200)
    with harness.app().heartbeat:
        assert status(harness).state.condition is Condition.TABLE_BEHIND  # it waits, and nothing fails


def test_the_report_says_the_same(harness: Harness) -> None:
    """The same words and numbers, and the same finding if the job noted it in the period."""
    harness.deliver("m1", GOOD)
    run_in_vain(harness)
    harness.clock.advance(600)
    now, app, seen = harness.clock.now(), harness.app(), table_of(harness)

    def report(since_hours: int, until_hours: int) -> Report:
        period = Period(now - timedelta(hours=since_hours), now - timedelta(hours=until_hours))
        return make_report(app, period, CLASSIC, is_job_named=False, with_samples=False)

    made = report(1, 0)
    assert made.figures.table == seen
    [point] = made.verdict.points
    assert (point.condition, made.needs_operator) == (Condition.TABLE_BEHIND, True)
    assert seen.words in point.reason
    assert table_lines(seen, now)[1] == seen.words
    assert report(2, 1).verdict.points == ()


def hold_back(harness: Harness) -> None:
    """Have the catalog refuse the file of one manifest."""
    sink_of(harness).exists = lambda uri: "/m1-" not in uri
    for name in ("m1", "m2"):
        harness.deliver(name, GOOD)
    assert [*harness.run_once().stuck] == ["m1"]


def test_what_is_held_back(harness: Harness) -> None:
    """It is not among what waits; `status` and a report tell a person what to do, until it was rebuilt."""
    hold_back(harness)
    found = table_of(harness)
    assert (found.held, found.waiting, found.waiting_seconds, found.is_behind) == (1, 0, None, False)
    assert "1 manifest is held back, because the catalog refuses it" in screen(status(harness)).plain
    with harness.app().heartbeat:
        state = status(harness).state
    assert (state.condition, state.severity) == (Condition.MANIFESTS_HELD_BACK, "act")
    assert state.reason == f"table lake.events: {found.held_words}"
    assert TableHeldBack.next_move in state.next_move
    now = harness.clock.now()
    period = Period(now - timedelta(hours=1), now + timedelta(hours=1))
    made = make_report(harness.app(), period, CLASSIC, is_job_named=False, with_samples=False)
    [point] = made.verdict.points
    assert (point.condition, point.reason, made.needs_operator) == (state.condition, state.reason, True)
    assert made.figures.table is not None
    assert found.held_words in table_lines(made.figures.table, now)
    sink_of(harness).exists = lambda _: True
    assert rebuild(harness, "m1").failed == ()
    assert list(harness.store.list(harness.layout.held_folder))
    assert (table_of(harness).held, table_of(harness).held_words) == (0, "")


def test_a_damaged_record_of_what_is_held_back(harness: Harness) -> None:
    """It counts, because the job leaves that manifest out, too."""
    hold_back(harness)
    harness.store.put(harness.layout.held(ManifestKey(DAY, "m1")), b"{")
    assert table_of(harness).held == 1


def test_several_jobs(harness: Harness) -> None:
    """Their sums, the latest batch of any, and the one that fares worst; a shard that is no more counts no more."""
    app = harness.app()
    now = harness.clock.now()
    ProgressNotes(app.state, "r1", 1).committed(7, named(2), now)
    harness.clock.advance(10)
    ProgressNotes(app.state, "r2", 2).failed("no answer", named(3), now)
    harness.settings = sharded(harness, 2)
    found = table_of(harness)
    assert (found.waiting, found.waiting_seconds, found.last_batch, found.error) == (5, 10.0, 7, "no answer")
    harness.settings = sharded(harness, 1)
    assert (table_of(harness).waiting, table_of(harness).error) == (2, "")


class RefusingStore:
    """A store to which no progress can be written."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def put(self, uri: str, data: bytes) -> None:
        if "/table/progress/" in uri:
            raise StoreUnavailable("throttled")
        self.inner.put(uri, data)


def test_notes_that_cannot_be_written(harness: Harness) -> None:
    """Nothing depends on them: the commit counts, and a damaged note is as none."""
    harness.deliver("m1", GOOD)
    assert harness.run_once(store=RefusingStore(harness.store)).committed == 1  # type: ignore[arg-type]
    assert table_of(harness).noted_at is None
    harness.store.put(harness.layout.table_progress(1), b"{")
    assert table_of(harness).noted_at is None
    harness.deliver("m2", GOOD)
    harness.run_once()
    assert table_of(harness).last_batch == 2
