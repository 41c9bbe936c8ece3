"""While a lost table is made again, or is made again half, only `compactor table repair` applies its batches."""

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest

from compactor.core.documents.changes import Why
from compactor.core.errors import OperatorError
from compactor.job.report import ManifestsUnfinished
from compactor.ops.table import merger
from compactor.table.named import Published
from compactor.table.standing import MANY_FAILURES
from compactor.wiring import operating, table_sink
from tests.support.harness import GOOD, DiedError, Harness, sink_of
from tests.support.rebuilding import rebuild
from tests.unit.ops.table.test_merger import check, live, merged, rows
from tests.unit.ops.table.test_released_originals import A_DAY, NAMES, maintained, merged_once, originals, removed

LATE = "m6"
"""A manifest that arrives after the table was lost."""

BATCHES = 6
"""On record when it is lost, the last of them a merge."""


pytestmark = pytest.mark.usefixtures("short_commit_pauses")


@pytest.fixture
def harness() -> Harness:
    """A lost table whose last merged file alone has the rows of four manifests, and nothing says what was finished."""
    made = removed(merged_once())
    made.deliver("m5", GOOD)
    made.run_once()
    rebuild(made, "m5", force=True)
    merged(made)
    sink_of(made).forget()
    merged(made)
    assert len(live(made)) == 1
    assert originals(made, NAMES) == []
    assert table_sink.committer(made.app()).batches.recorded() == BATCHES
    return made


def lost(harness: Harness, *, applied: int) -> Counter[str]:
    """Lose the table, and make it again up to a batch; return its rows of before."""
    before = rows(harness)
    sink_of(harness).drop()
    harness.store.delete([harness.layout.finished_batches])
    committer = table_sink.committer(harness.app(), replays=True)
    for _ in range(applied):
        assert committer.commit(()).applied is not None
    return before


def fence(harness: Harness) -> int | None:
    head = sink_of(harness).head()
    return head.fence if head is not None else None


OTHERS: dict[str, Callable[[Harness], object]] = {
    "commit": lambda harness: table_sink.committer(harness.app()).commit([Published(harness.commit("m1").key)]),
    "look": lambda harness: table_sink.committer(harness.app()).look([Published(harness.commit("m1").key)]),
    "merge": merged,
    "maintain": maintained,
    "undo": lambda harness: table_sink.merger(harness.app()).undo(["any"]),
    "rebuild": lambda harness: rebuild(harness, "m5", force=True),
}


@pytest.mark.parametrize("applied", [0, 1, BATCHES - 2])
@pytest.mark.parametrize("other", OTHERS)
def test_no_other_process_goes_on(harness: Harness, other: str, applied: int) -> None:
    """It says what it found and what to do, and changes nothing; the call that makes it again has all rows back."""
    before = lost(harness, applied=applied)
    at, commits = fence(harness), sink_of(harness).commits
    if (other, applied) != ("maintain", 0) and (other, applied) != ("merge", 0):  # these find no table
        with pytest.raises(OperatorError, match=f"the table's last batch is {applied}, but.* `compactor table repair`"):
            OTHERS[other](harness)
    assert (fence(harness), sink_of(harness).commits) == (at, commits)
    table_sink.table_keeper(harness.app()).repair()
    check(harness, before)


@pytest.mark.parametrize("other", ["commit", "merge", "maintain"])
def test_the_last_batch_is_applied_by_any_process(harness: Harness, other: str) -> None:
    """Each may find it after a death. It knows that parts of a merged file are gone, as what makes it again does."""
    before = lost(harness, applied=BATCHES - 1)
    OTHERS[other](harness)
    assert fence(harness) == BATCHES
    table_sink.table_keeper(harness.app()).repair()
    check(harness, before)


def test_a_last_merge_that_the_catalog_refuses(harness: Harness) -> None:
    """Its rows are in the table all the same, in the files that it was made of: the table passes over it."""
    committer, table = table_sink.committer(harness.app()), sink_of(harness)
    head = committer.settled()
    batch = committer.batches.batch(BATCHES)
    assert batch is not None
    again = committer.batches.create(BATCHES + 1, (), merge=batch.merge)
    before, found = rows(harness), live(harness)
    exists, table.exists = table.exists, lambda uri: uri not in found
    table_sink.committer(harness.app()).commit(())
    table.exists = exists
    assert (fence(harness), again.number, head.fence) == (BATCHES + 1, BATCHES + 1, BATCHES)
    check(harness, before)


def test_a_job_waits_until_the_table_is_made_again(harness: Harness) -> None:
    """What it placed stays placed, no attempt counts as failed, and `status` says why; then it commits."""
    before = lost(harness, applied=2)
    harness.deliver(LATE, GOOD)
    with pytest.raises(ManifestsUnfinished, match="`compactor table repair`"):
        harness.run_once()
    assert fence(harness) == 2
    seen = operating.status_reader(harness.app()).read().table
    assert seen is not None
    assert seen.is_behind
    assert seen.failures >= MANY_FAILURES
    assert "`compactor table repair`" in seen.error
    assert harness.commit(LATE).attempt == 1
    table_sink.table_keeper(harness.app()).repair()
    assert harness.run_once().committed == 1
    assert rows(harness).total() == before.total() + 2
    check(harness, rows(harness))


@pytest.mark.parametrize("died_at", range(1, BATCHES + 1))
def test_a_call_that_dies(harness: Harness, died_at: int) -> None:
    """The next one goes on where it ended, but not beside a job, which may have known the lost table."""
    before = lost(harness, applied=0)

    app, batches = harness.app(), count()  # it is called when the work begins, too

    def die() -> None:
        if next(batches) == died_at:
            raise DiedError

    app.state.meter.on_change = die
    with pytest.raises(DiedError):
        table_sink.table_keeper(app).repair()
    assert fence(harness) == died_at
    if died_at < BATCHES - 1:
        with harness.app().heartbeat, pytest.raises(OperatorError, match="`compactor stop`"):
            table_sink.table_keeper(harness.app()).repair()
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.applied, report.adopted) == (BATCHES - died_at, 0)
    check(harness, before)


def test_a_merge_whose_record_was_restored(caplog: pytest.LogCaptureFixture) -> None:
    """A table that is made again without it lacks its rows, and the log says why; the next one has them, none twice."""
    harness = removed(merged_once())
    before, [merged_file] = rows(harness), live(harness)
    record = harness.layout.change(Why.MERGED, "", harness.layout.merge_of(merged_file))
    good = harness.store.read(record)
    harness.store.put(record, b"{")
    sink_of(harness).drop()
    lacking = table_sink.table_keeper(harness.app()).repair()
    assert (len(lacking.missing), lacking.needs_operator, live(harness)) == (len(NAMES), True, [])
    sink_of(harness).drop()
    table_sink.table_keeper(harness.app()).repair()
    assert [each.getMessage() for each in caplog.records].count("table.refused") == 1, "once for each cause"
    harness.store.put(record, good)
    sink_of(harness).drop()
    assert not table_sink.table_keeper(harness.app()).repair().needs_operator
    assert live(harness) == [merged_file]
    check(harness, before)
    harness.deliver("m5", GOOD)
    harness.run_once()
    rebuild(harness, "m2", force=True)
    before, files = rows(harness), sorted(live(harness))
    sink_of(harness).drop()
    assert not table_sink.table_keeper(harness.app()).repair().needs_operator
    assert sorted(live(harness)) == files
    check(harness, before)


def test_a_merge_that_was_never_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog refused it, and a later one has its parts: it does not come back, although its file is there."""
    harness = Harness(table={"merged_originals": "remove"})
    for name in NAMES:
        harness.deliver(name, GOOD)
    harness.run_once()
    table = sink_of(harness)
    table.exists = lambda uri: "/merged/" not in uri
    with monkeypatch.context() as patch:
        patch.setattr(merger, "remove_leftovers", lambda _: (0, 0))
        assert merged(harness).not_merged
    kept = {info.uri: harness.store.read(info.uri) for info in harness.store.list(harness.layout.merged_folder)}
    table.exists = lambda _: True
    assert merged(harness).made_files == 1
    harness.clock.advance(A_DAY)
    table.forget()
    assert maintained(harness).removed_originals == len(NAMES)
    for uri, data in kept.items():
        harness.store.put(uri, data)
    before, files = rows(harness), live(harness)
    batches = table_sink.committer(harness.app()).batches
    refused = [number for number in range(1, batches.recorded() + 1) if batches.refused.has(number)]
    table.drop()
    report = table_sink.table_keeper(harness.app()).repair()
    assert (report.applied, len(refused)) == (batches.recorded() - 1, 1)
    assert live(harness) == files
    check(harness, before)
