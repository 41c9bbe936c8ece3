"""Promises of `compactor table maintain`: whatever happens meanwhile, a snapshot that is kept can be read."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.errors import OperatorError, StoreUnavailable, TableCommitUnknown, TableConflict, TryAgainError
from compactor.ops.table import maintainer as maintainer_module
from compactor.ops.table.maintainer import TRIES, UpkeepReport
from compactor.table.catalog import TableChange, TableFile, TableHead
from compactor.table.upkeep import LOOSE_MANIFESTS, TableHistory
from compactor.wiring import table_sink
from tests.support.harness import GOOD, Harness, sink_of
from tests.support.memory_table import Answer, MemoryTable
from tests.support.table_catalogs import DATE, version
from tests.support.table_upkeep import OWNER, maintainer

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
MANY = 40
"""Batches, of which each leaves a manifest: more than are merged."""


class Killed(BaseException):
    """The process is gone."""


class World:
    """A table that took some batches long ago, and a clock."""

    def __init__(self, batches: int = MANY) -> None:
        self.now = START
        self.table = MemoryTable(now=lambda: self.now)
        self.table.create(OWNER, version(1))
        for _ in range(batches):
            self.commit()
        self.now += 9 * DAY

    def commit(self) -> None:
        """A job commits a batch of one file; it does not learn what became of it if the answer is lost."""
        head = self.head()
        file = TableFile(f"/lake/output/{head.fence + 1}.parquet", 1, 1, DATE)
        with suppress(TryAgainError):
            self.table.commit(head, TableChange(head.fence + 1, (file,)))
        self.now += timedelta(minutes=1)

    def head(self) -> TableHead:
        head = self.table.head()
        assert head is not None
        return head

    def maintain(self, before: Callable[[str], None] = lambda _: None, **options: Any) -> UpkeepReport:
        return self.maintain_by(Watched(self.table, before), **options)

    def maintain_by(self, catalog: Any, **options: Any) -> UpkeepReport:
        return maintainer(catalog, self.now, **{"batches": 2 * MANY, **options}).maintain()

    def check(self) -> None:
        """Each file of rows is there once, and each snapshot has all that it needs."""
        assert [each.uri for each in self.table.live_files()] == [
            f"/lake/output/{number}.parquet" for number in range(1, self.head().fence + 1)
        ]
        folder = self.table.folder()
        assert folder is not None
        assert folder.named <= {each.name for each in folder.files}

    def contents(self) -> tuple[object, ...]:
        """All that the table is made of."""
        found = self.table.history()
        assert found is not None
        return found[0], sorted(map(str, found[1].snapshots)), sorted(self.table.written)


@dataclass
class Watched:
    """A catalog that something happens to before each call of upkeep, and after it; or that answers otherwise."""

    table: MemoryTable
    before: Callable[[str], None] = lambda _: None
    otherwise: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.before(name)
            found = self.otherwise.get(name, getattr(self.table, name))(*arguments)
            self.before(f"after {name}")
            return found

        return call


@pytest.fixture
def world() -> World:
    return World()


def once(step: str, what: Callable[[], None]) -> Callable[[str], None]:
    """Does something at the first of these steps."""
    left = [what]

    def at(found: str) -> None:
        if found == step and left:
            left.pop()()

    return at


def test_what_is_due(world: World) -> None:
    """Manifests are merged, snapshots expire, and what only these needed goes; then nothing is due."""
    head = world.head()
    report = world.maintain()
    assert (report.merged_manifests, report.expired_snapshots, report.snapshots) == (MANY, MANY, 1)
    assert (report.removed_files, report.removed_bytes) == (2 * MANY, 2 * MANY * 1000)
    assert replace(world.head(), snapshot_id=head.snapshot_id) == head
    world.check()
    again = world.maintain()
    assert (again.merged_manifests, again.expired_snapshots, again.removed_files, again.snapshots) == (0, 0, 0, 1)


def test_a_dry_run(world: World) -> None:
    """Says what would be done, and does nothing."""
    before = world.contents()
    foreseen = maintainer(world.table, world.now, batches=MANY, least=5).maintain(dry_run=True)
    assert world.contents() == before
    # Merging makes a snapshot more, so one more of the others goes, and the files that only these need.
    assert foreseen.merged_manifests == MANY
    report = world.maintain(least=5)
    assert abs(report.expired_snapshots - foreseen.expired_snapshots) <= 1
    assert abs(report.removed_files - foreseen.removed_files) <= 1


@pytest.mark.parametrize("step", ["merge_manifests", "expire", "folder", "remove", "after history", "after folder"])
def test_a_job_that_commits_meanwhile(world: World, step: str) -> None:
    """Upkeep decides again on the table as it is then."""
    report = world.maintain(once(step, world.commit))
    assert (world.head().fence, report.exists) == (MANY + 1, True)
    world.check()
    world.now += DAY
    world.maintain()
    world.commit()
    world.check()
    assert world.head().fence == MANY + 2


def test_another_upkeep_at_the_same_time(world: World) -> None:
    """Each finds what the other did."""
    for step in ("merge_manifests", "expire", "folder", "remove", "after folder"):
        world = World()
        world.maintain(once(step, world.maintain))
        world.check()
        assert len(world.contents()[1]) <= 2


def test_a_table_that_moves_on_all_the_time(world: World) -> None:
    """Upkeep gives way after some attempts; the job goes on."""
    with pytest.raises(TableConflict):
        world.maintain(lambda step: world.commit() if step in {"expire", "merge_manifests"} else None)
    assert world.head().fence == MANY + TRIES
    world.check()


@pytest.mark.parametrize("answer", [Answer.LOST, Answer.UNAVAILABLE, Answer.LATE])
def test_answers_that_do_not_tell(world: World, answer: Answer) -> None:
    """The table is read again: what took effect is not done again, what did not is, and a late change never is."""
    world.table.answers = chain([answer] * 2, repeat(Answer.WELL)).__next__
    report = world.maintain()
    assert (report.merged_manifests, report.snapshots) == (MANY, 1)
    assert report.expired_snapshots == MANY
    while world.table.land():
        raise AssertionError("a change landed that was made for an earlier snapshot")
    world.check()


def test_a_catalog_that_never_tells(world: World) -> None:
    """Upkeep says so after some attempts."""
    world.table.answers = lambda: Answer.UNAVAILABLE
    with pytest.raises(TableCommitUnknown):
        world.maintain()
    world.check()


def test_a_catalog_that_does_nothing(world: World) -> None:
    """It accepts an expiry, and has all snapshots still: that is told, and no file is removed."""
    before = len(world.table.written)
    with pytest.raises(TableConflict, match="do not expire"):
        world.maintain_by(Watched(world.table, otherwise={"expire": lambda *_: None}))
    assert len(world.table.written) == before + 2  # of the merged manifests


def test_a_table_that_was_neglected(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change takes only so many snapshots, the oldest first, beside a job that commits all the time."""
    monkeypatch.setattr(maintainer_module, "EXPIRED_AT_ONCE", 3)
    parts = list[list[int]]()

    def expire(head: TableHead, part: list[int]) -> None:
        parts.append(part)
        if len(parts) % 2:
            world.commit()
        world.table.expire(head, part)

    report = world.maintain_by(Watched(world.table, otherwise={"expire": expire}), least=5, days=1)
    assert {len(part) for part in parts} <= {1, 2, 3}
    assert parts == sorted(parts)
    found = world.table.history()
    assert found is not None
    assert report.snapshots == len(found[1].snapshots)
    assert report.expired_snapshots >= MANY - 5
    world.check()


def test_a_kill_at_each_step() -> None:
    """Another call does what is left."""
    undisturbed = World()
    steps = list[str]()
    undisturbed.maintain(steps.append)
    for at in range(len(steps)):
        world, seen = World(), list[str]()

        def kill(step: str, seen: list[str] = seen, at: int = at) -> None:
            seen.append(step)
            if len(seen) > at:
                raise Killed

        with pytest.raises(Killed):
            world.maintain(kill)
        world.check()
        world.maintain()
        world.check()
        assert len(world.contents()[1]) == 1
        assert len(world.table.written) == len(undisturbed.table.written)


def test_a_kill_while_files_are_removed(world: World) -> None:
    """Whichever of them are gone, another call removes the rest, and no other."""

    def some(names: Iterable[str]) -> int:
        world.table.remove(list(names)[::2])
        raise Killed

    with pytest.raises(Killed):
        world.maintain_by(Watched(world.table, otherwise={"remove": some}))
    world.check()
    world.maintain()
    world.check()
    assert len(world.table.written) == 2


def test_a_batch_that_lands_late(world: World) -> None:
    """Its files of metadata wait for it, however long that takes, as long as it can land."""
    world.maintain()
    world.now += 9 * DAY
    world.table.answers = chain([Answer.LATE], repeat(Answer.WELL)).__next__
    world.commit()
    world.now += 9 * DAY
    assert world.maintain().removed_files == 0
    assert world.table.land()
    world.check()
    assert world.head().fence == MANY + 1


def test_what_a_failed_commit_left(world: World) -> None:
    """Goes a day after it was written, once the table has a later snapshot."""
    world.maintain()
    world.table.answers = chain([Answer.UNAVAILABLE], repeat(Answer.WELL)).__next__
    world.commit()
    world.now += timedelta(hours=1)
    world.commit()
    world.commit()
    assert world.maintain(least=9).removed_files == 0
    world.now += DAY
    assert world.maintain(least=9).removed_files == 2
    world.check()


MOVES = ("commit", "lost", "late", "unavailable", "land", "maintain", "killed", "hour", "week")


@given(st.lists(st.sampled_from(MOVES), max_size=30), st.integers(0, 12), st.sampled_from([0.0, 2.0]))
def test_any_course(moves: list[str], step: int, days: float) -> None:
    """Batches that are lost or late, kills and long pauses in any order: what is kept has all that it needs."""
    world = World(LOOSE_MANIFESTS)
    for move in moves:
        world.table.answers = lambda move=move: Answer(move) if move in {"lost", "late", "unavailable"} else Answer.WELL
        if move == "land":
            world.table.land()
        elif move == "maintain":
            world.maintain(days=days, least=2)
        elif move == "killed":
            seen = list[str]()

            def kill(each: str, seen: list[str] = seen) -> None:
                seen.append(each)
                if len(seen) > step:
                    raise Killed

            with suppress(Killed):
                world.maintain(kill, days=days, least=2)
        elif move in {"hour", "week"}:
            world.now += timedelta(hours=1) if move == "hour" else 7 * DAY
        else:
            world.commit()
        world.check()


def test_a_table_of_another_ledger(world: World) -> None:
    """Or one that lacks batches that were in it: nothing of it is touched, for it may have to be restored."""
    before = world.contents()
    other = maintainer(world.table, world.now, batches=MANY)
    with pytest.raises(OperatorError, match="is not on record"):
        maintainer(world.table, world.now, batches=MANY - 1).maintain()
    other.batches.note_finished(MANY + 1)
    with pytest.raises(OperatorError, match="dropped, recreated or restored"):
        other.maintain()
    world.table.drop()
    world.table.create("/elsewhere/", version(1))
    with pytest.raises(OperatorError, match="belongs to the state /elsewhere/"):
        world.maintain()
    assert world.contents()[2] == before[2]


def test_a_catalog_that_is_down(world: World) -> None:
    """Is an error that passes; at any step, nothing that is needed is lost."""
    for at in range(8):
        seen = list[str]()

        def fall(step: str, seen: list[str] = seen, at: int = at) -> None:
            seen.append(step)
            world.table.is_down = len(seen) > at

        with suppress(StoreUnavailable):
            world.maintain(fall)
        world.table.is_down = False
        world.check()


def test_a_table_that_others_need(world: World) -> None:
    """With gc.enabled = false nothing expires and nothing is removed, not even what this table does not need."""
    world.table.written["00000000-0000-0000-0000-0000000000ff-m0.avro"] = START

    def kept() -> tuple[TableHead, TableHistory] | None:
        found = world.table.history()
        return found and (found[0], replace(found[1], keeps_all=True))

    report = world.maintain_by(Watched(world.table, otherwise={"history": kept}))
    assert (report.keeps_all, report.expired_snapshots, report.removed_files) == (True, 0, 0)
    assert world.maintain(least=99).removed_files == 1


def test_files_that_cannot_be_listed(world: World) -> None:
    """Snapshots expire, and the report says that files stay."""
    report = world.maintain_by(Watched(world.table, otherwise={"folder": lambda _: None}))
    assert (report.expired_snapshots, report.lists_files, report.removed_files) == (MANY, False, 0)


def test_beside_a_job() -> None:
    """A table that a job made is as the ledger has it, before and after, and the job goes on."""
    harness = Harness(table={})
    for name in ("m1", "m2", "m3"):
        harness.deliver(name, GOOD)
        harness.run_once()
    harness.clock.set(harness.clock.now() + 9 * DAY)
    assert table_sink.maintainer(harness.app(), keep_snapshots=1).maintain().expired_snapshots == 2
    assert table_sink.maintainer(harness.app(), keep_days=0, keep_snapshots=1).maintain().snapshots == 1
    harness.deliver("m4", GOOD)
    harness.run_once()
    assert not table_sink.table_keeper(harness.app()).compare().needs_operator
    assert sink_of(harness).head() is not None
