"""Jobs of several shards with one table: the first one commits what all of them placed, and none depends on it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from compactor.core.layout import ManifestKey
from compactor.job import table_commits
from compactor.job.publication import Publisher
from compactor.job.results import FINISHED
from compactor.job.scheduler import Scheduler
from compactor.job.table_commits import PATIENCE_INTERVALS, CommitTurns, TableCommits
from compactor.ledger.table.progress import NOTED_MANIFESTS, ProgressNotes, noted_published, read_progress
from compactor.table.committer import Progress
from compactor.table.named import Published
from compactor.wiring import streaming, table_sink
from tests.support.harness import DAY, GOOD, Harness, sink_of
from tests.support.memory_table import Answer

SECONDS = 60.0


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_commits, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(table_commits, "LONGEST_PAUSE_SECONDS", 0.001)


@dataclass
class Job:
    """The job of one shard, which does what it is told to."""

    harness: Harness
    table: TableCommits
    runner: Scheduler

    def place(self, *manifest_ids: str) -> None:
        """Compact manifests up to their files' final places."""
        batch = self.runner.run([self.harness.deliver(each, GOOD) for each in manifest_ids])
        assert batch.failures == {}
        assert all(each in self.table for each in manifest_ids)

    def step(self, *, at_once: bool = False) -> set[str]:
        """Commit, or look, if it is time; returns the manifests that are done since the last step."""
        self.table.step(at_once=at_once)
        if self.table._under_way is not None:
            self.table._under_way.result()
        return {each.manifest_id for each in self.table.take_ended() if each.ending in FINISHED}


JobOf = Callable[..., Job]


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Harness:
    monkeypatch.setattr(table_sink, "MANIFESTS_PER_COMMIT", 100)
    return Harness(table={"commit_seconds": SECONDS})


@pytest.fixture
def job_of(harness: Harness) -> Iterator[JobOf]:
    """Makes the job of a shard."""
    made: list[Job] = []

    def job_of(shard: int, *, leads: bool) -> Job:
        app = harness.app()
        alone = table_sink.table_commits(app, Publisher(app.state, app.on_crash_point, table_sink.committer(app)), None)
        assert alone is not None
        table = replace(
            alone,
            notes=ProgressNotes(app.state, f"run-{shard}", shard),
            turns=CommitTurns(app.state, shard, lambda: leads),
            monotonic=lambda: harness.clock.now().timestamp(),
        )
        made.append(Job(harness, table, streaming.scheduler(app, harness.engine(), table)))
        return made[-1]

    yield job_of
    for each in made:
        each.runner.close()
        each.table._pool.shutdown()


def test_one_commit_for_all(harness: Harness, job_of: JobOf) -> None:
    """What all runs noted is one batch of the first one, and each brings its own manifests to done."""
    first, second, third = job_of(1, leads=True), job_of(2, leads=False), job_of(3, leads=False)
    first.place("m1")
    second.place("m2", "m3")
    third.place("m4")
    assert second.step() == third.step() == set()
    assert sink_of(harness).commits == 0
    assert first.step() == {"m1"}
    assert sink_of(harness).commits == 1
    harness.clock.advance(SECONDS / 2)
    assert (second.step(), third.step()) == ({"m2", "m3"}, {"m4"})
    assert sink_of(harness).commits == 1
    assert noted_published(first.table.turns.state, but_shard=0) == []  # type: ignore[union-attr]
    harness.check_exact()


def test_a_first_run_without_manifests(harness: Harness, job_of: JobOf) -> None:
    """It commits those of the others, and makes no further snapshot while these are on their way to done."""
    first, second = job_of(1, leads=True), job_of(2, leads=False)
    for name in ("m1", "m2"):
        second.place(name)
        second.step()
        for _ in range(4):
            harness.clock.advance(SECONDS)
            assert first.step() == set()
        assert second.step() == {name}
    assert sink_of(harness).commits == 2
    harness.check_exact()


def test_no_run_depends_on_the_first_one(harness: Harness, job_of: JobOf) -> None:
    """One that waited too long commits what all of them noted, though another run should have."""
    second, third = job_of(2, leads=False), job_of(3, leads=False)
    second.place("m1")
    third.place("m2")
    for _ in range(PATIENCE_INTERVALS):
        assert second.step() == third.step() == set()
        harness.clock.advance(SECONDS)
    harness.clock.advance(1)
    assert second.step() == {"m1"}
    assert third.step() == {"m2"}
    assert sink_of(harness).commits == 1
    harness.check_exact()


def test_a_failure_that_another_run_has_ended(harness: Harness, job_of: JobOf) -> None:
    """The first run fails with what others placed, and another one commits it: the first one says that all is well."""
    first, second = job_of(1, leads=True), job_of(2, leads=False)
    second.place("m1")
    second.step()
    sink_of(harness).is_down = True
    first.step()
    sink_of(harness).is_down = False
    assert second.step(at_once=True) == {"m1"}

    def failures() -> tuple[int, str]:
        seen = read_progress(harness.app().state, 1)
        assert seen is not None
        return seen.failures, seen.error

    assert failures()[0] == 1
    harness.clock.advance(SECONDS)
    first.step()
    assert failures() == (0, "")
    first.place("m2")
    assert first.step(at_once=True) == {"m2"}


def test_two_that_lead(harness: Harness, job_of: JobOf) -> None:
    """Both commit all that is noted; each manifest is in the table once."""
    jobs = [job_of(1, leads=True), job_of(1, leads=True), job_of(2, leads=False)]
    sink_of(harness).answers = iter([Answer.LOST, Answer.LATE, *[Answer.WELL] * 99]).__next__
    done = set[str]()
    for round_, each in enumerate(jobs * 2):
        each.place(f"m{round_}")
        done |= each.step()
    for _ in range(8):
        harness.clock.advance(SECONDS)
        sink_of(harness).land()
        for each in jobs:
            done |= each.step()
    assert done == {f"m{number}" for number in range(6)}
    expected = sorted(file.final for each in done for file in harness.commit(each).outputs)
    assert sorted(each.uri for each in sink_of(harness).live_files()) == expected
    harness.check_exact()


def test_a_run_that_ends_waits_for_no_other(harness: Harness, job_of: JobOf) -> None:
    """What it placed is in the table at once."""
    second = job_of(2, leads=False)
    second.place("m1")
    assert second.step(at_once=True) == {"m1"}
    harness.check_exact()


def test_what_is_placed_meanwhile_waits(harness: Harness, job_of: JobOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit for all ends, however fast others place; the next one is made when it is time, or at the end."""
    first, second = job_of(1, leads=True), job_of(2, leads=False)
    numbers = iter(range(20))
    commit = table_commits.TableCommits._commit_one

    def busy(self: TableCommits, published: Iterable[Published]) -> Progress:
        progress = commit(self, published)
        for each in (first, second):
            each.place(f"m{next(numbers)}")  # fails if it never ends
        second.table.notes.published(*second.table._left())
        return progress

    monkeypatch.setattr(table_commits.TableCommits, "_commit_one", busy)
    first.place("own")
    second.place("other")
    second.step()
    assert first.step() == {"own"}
    assert first.step() == set()
    assert sink_of(harness).commits == 1
    harness.clock.advance(SECONDS)
    assert first.step() == {"m0"}
    first.table.close()
    assert sink_of(harness).commits == 3


def test_more_than_a_note_names(harness: Harness, job_of: JobOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is noted once the first ones are in the table."""
    assert NOTED_MANIFESTS >= 100
    monkeypatch.setattr("compactor.ledger.table.progress.NOTED_MANIFESTS", 2)
    first, second = job_of(1, leads=True), job_of(2, leads=False)
    second.place("m1", "m2", "m3")
    second.step()
    assert first.step() == set()
    harness.clock.advance(SECONDS)
    done = [second.step()]
    first.step()
    harness.clock.advance(SECONDS)
    done.append(second.step())
    assert sorted(map(len, done)) == [1, 2]
    harness.check_exact()


def test_what_ended_is_forgotten_once_it_is_not_noted(harness: Harness) -> None:
    """So that a manifest which is published again, after an operator released it, is committed again."""
    state = harness.app().state
    turns = CommitTurns(state, 1, lambda: True)
    notes = ProgressNotes(state, "run-2", 2)
    one = Published(ManifestKey(DAY, "m1"))
    notes.published([one.batched], harness.clock.now())
    assert turns.noted() == [one]
    turns.note_ended([one])
    assert turns.noted() == []
    notes.published([], None)
    assert turns.noted() == []
    notes.published([one.batched], harness.clock.now())
    assert turns.noted() == [one]
