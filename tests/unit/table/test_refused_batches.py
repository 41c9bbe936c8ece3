"""Batches that the catalog refuses for ever: the one to blame is held back with its reason, and all others go on."""

import contextlib
from collections.abc import Callable
from itertools import chain, cycle
from typing import Any

import pytest

from compactor.core.documents.table_records import BatchedManifest
from compactor.core.errors import (
    AccessError,
    OperatorError,
    TableCommitUnknown,
    TableConflict,
    TableHeldBack,
    TableRefused,
)
from compactor.ledger.table.batches import RefusedBatches
from compactor.table import applying, changes, committer
from compactor.table.applying import MAX_HELD, REFUSALS, TRIES
from compactor.table.catalog import TableChange
from compactor.table.named import UNTOLD, Published
from tests.support.harness import DiedError
from tests.support.memory_table import Answer
from tests.support.table_catalogs import version
from tests.support.table_processes import STEPS_A_MANIFEST, Process, TableWorld
from tests.unit.table.test_committer import ANSWERS, at, watched


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in a fixed order, so that each case is the same each time."""
    monkeypatch.setattr(committer, "map_ordered", map)
    monkeypatch.setattr(changes, "map_ordered", map)


@pytest.fixture
def world() -> TableWorld:
    return watched(TableWorld())


def to_the_end(process: Process) -> dict[Published, str]:
    """Take steps until nothing is left to commit; return why manifests are stuck."""
    stuck = {}
    for _ in range(STEPS_A_MANIFEST * len(process.published)):
        progress = process.step()
        stuck.update({published: str(error) for published, error in progress.stuck.items()})
    assert process.published == []
    return stuck


def test_one_of_many(world: TableWorld) -> None:
    """Of ninety-nine manifests, the one with a file that the catalog refuses is found in a few batches."""
    published = [world.place(f"m{number}", files=1) for number in range(99)]
    world.spoil(published[70])
    [(stuck, why)] = to_the_end(world.process(published)).items()
    assert stuck == published[70]
    assert "does not exist; expected the files of the change" in why
    assert len(list(world.recorded())) <= 15
    world.check()
    assert world.held() == [published[70]]


def test_who_comes_later_waits_for_none_of_it(world: TableWorld) -> None:
    """A new process with new manifests, beside one that was held back, commits all at once."""
    to_the_end(world.process([world.spoil(world.place("a"))]))
    before = len(list(world.recorded()))
    progress = world.process([world.place(name) for name in "bcd"]).step()
    assert (len(progress.visible), len(list(world.recorded()))) == (3, before + 1)
    world.check()


def test_several_bad_ones(world: TableWorld) -> None:
    """Each is held back alone."""
    published = [world.place(f"m{number}") for number in range(12)]
    bad = [world.spoil(published[number]) for number in (0, 5, 6, 11)]
    to_the_end(world.process(published, most=8))
    world.check()
    assert sorted(world.held()) == sorted(bad)


def test_it_takes_several_refusals(world: TableWorld) -> None:
    """One that passes costs another try, and nothing else."""
    published = world.place("a")
    refused = iter([False] * (REFUSALS - 1))
    world.table.exists = lambda _: next(refused, True)
    assert world.process([published]).step().visible == [published]
    assert world.held() == []
    world.check()


def test_too_few_refusals_among_other_failures(world: TableWorld) -> None:
    """Blame no batch, although the tries of one call are used up: the next call goes on."""
    published = world.place("a")
    process, unavailable = world.process([published]), [Answer.UNAVAILABLE] * (TRIES - REFUSALS + 1)
    world.table.answers = lambda: unavailable.pop() if unavailable else Answer.WELL
    world.table.exists = lambda _: bool(unavailable)
    with pytest.raises(TableConflict, match="does not exist"):
        process.step()
    assert not world.batches().refused.has(1)
    world.table.exists = lambda _: True
    assert process.step().visible == [published]
    world.check()


def test_what_any_change_would_meet_is_not_blamed_on_a_batch(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog that refuses everything, or the credentials, is waited for, as long as it takes."""
    process = world.process([world.place("a"), world.place("b")])
    process.step()
    process = world.process([world.place("c")])
    commit = type(world.table).commit
    for error in (TableRefused, OperatorError, AccessError):

        def refuse(*_: object, error: type[OperatorError] = error) -> int:
            raise error("no")

        monkeypatch.setattr(type(world.table), "commit", refuse)
        for _ in range(3):
            with pytest.raises(error):
                process.step()
    monkeypatch.setattr(type(world.table), "commit", commit)
    process.step()
    assert (world.held(), len(list(world.recorded()))) == ([], 2)
    world.check()


def test_an_unknown_answer_is_no_refusal(world: TableWorld) -> None:
    """However often: the batch waits, also if the catalog takes the next change."""
    process = world.process([world.place("a")])
    for _ in range(3):
        world.table.answers = chain([Answer.UNAVAILABLE] * TRIES, cycle([Answer.WELL])).__next__
        with pytest.raises(TableCommitUnknown):
            process.step()
    assert not world.batches().refused.has(1)
    world.settle()
    world.check()


def test_a_late_batch_that_was_passed_over(world: TableWorld) -> None:
    """What a paused process had sent of it never lands, and the process learns what became of it."""
    published = world.place("a")
    world.table.answers = iter([Answer.LATE, *[Answer.UNAVAILABLE] * 4]).__next__
    late = world.process([published])
    late.tried()
    head = world.table.head()
    assert head is not None
    world.spoil(published)
    world.table.answers = lambda: Answer.WELL
    assert to_the_end(world.process([published])).keys() == {published}
    world.unfit.clear()
    assert not world.table.land()
    with pytest.raises(TableConflict):
        world.table.commit(head, TableChange(1, ()))
    assert [*late.step().stuck] == [published]
    assert world.live() == []


def test_a_batch_that_lands_before_it_is_passed_over(world: TableWorld) -> None:
    """The table took it, whatever the refusals said: it is visible, and not held back."""
    published = world.place("a")
    world.table.answers = iter([Answer.LATE, *[Answer.UNAVAILABLE] * 4]).__next__
    world.process([published]).tried()
    world.spoil(published)
    world.table.answers = lambda: Answer.WELL
    process = world.process([published])
    calls = iter(range(100))

    def landing() -> None:
        if next(calls) == 2 * REFUSALS + 1:  # it sends the change that passes over the batch
            world.unfit.clear()
            assert world.table.land()
            world.spoil(published)

    process.committer.catalog.before = landing  # type: ignore[attr-defined]
    assert to_the_end(process) == {}
    world.unfit.clear()
    world.check()


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("answers", ANSWERS, ids=lambda each: "-".join(answer.value for answer in each))
def test_a_death_at_every_step(answers: tuple[Answer, ...], every: int) -> None:
    """Between refusals, the fence, what is held back and the record of it: another process comes to the same."""

    def die() -> None:
        raise DiedError

    for step in range(1 + ANSWERS.index(answers) % every, 60, every):
        world = watched(TableWorld())
        world.table.answers = cycle(answers).__next__
        published = [world.spoil(world.place("a")), world.place("b")]
        dying = world.process(published, before=at(step, die))
        with contextlib.suppress(DiedError):
            for _ in range(4):
                dying.tried()
        world.process(published).tried()
        world.settle()
        world.check()
        assert world.held() == published[:1]


def meet(first: int, second: int, answers: tuple[Answer, ...], *, overlap: bool) -> TableWorld:
    """Three processes, of which one has a bad manifest: before its nth call, each lets the next one take two steps."""
    world = watched(TableWorld())
    world.table.answers = cycle(answers).__next__
    a, b, c = world.spoil(world.place("a")), world.place("b"), world.place("c")
    third = world.process([a, b, c] if overlap else [c], name="third")

    def third_step() -> None:
        for _ in range(2):
            third.tried()
            world.table.land()

    other = world.process([a, b] if overlap else [b], name="second", before=at(second, third_step))

    def other_steps() -> None:
        for _ in range(2):
            other.tried()

    one = world.process([a, b] if overlap else [a], name="first", before=at(first, other_steps))
    for process in (one, one, other, third):
        process.tried()
    world.settle()
    return world


@pytest.mark.parametrize("every", [17, pytest.param(5, marks=pytest.mark.full)])
@pytest.mark.parametrize("overlap", [False, True], ids=["own", "same"])
def test_three_committers_at_every_step(*, overlap: bool, every: int) -> None:
    """Whatever they find of each other, and whatever the catalog answers, each file is there once or held back."""
    for first in range(1, 40):
        for second in range(1 + first % every, 40, every):
            world = meet(first, second, ANSWERS[(first + second) % len(ANSWERS)], overlap=overlap)
            world.check()
            assert [each.key.id for each in world.held()] == ["a"]


def test_a_process_that_says_no_reason(world: TableWorld) -> None:
    """One that dies after the table has passed over a batch: the next one records that, before anything else."""
    published = world.spoil(world.place("a"))
    head = world.table.create(world.layout.table_owner, version(1))
    world.batches().create(1, [BatchedManifest(date=published.key.date, manifest_id=published.key.id)])
    world.table.commit(head, TableChange(1, (), is_refused=True))
    other = world.place("b")
    assert world.process([other]).step().visible == [other]
    assert [each.reason for each in world.batches().refused.all_held()] == [UNTOLD]
    world.check()


class Interrupted:
    """A store in which others do something right before, or right after, a manifest is held back."""

    def __init__(
        self, world: TableWorld, *, before: Callable[[], Any] = tuple, after: Callable[[], Any] = tuple
    ) -> None:
        self._world, self._before, self._after = world, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.store, name)

    def create(self, uri: str, data: bytes) -> bool:
        is_held = uri.startswith(self._world.layout.held_folder)
        if is_held:
            self._before()
        made = self._world.store.create(uri, data)
        if is_held:
            self._after()
        return made


@pytest.mark.parametrize("dies", [False, True], ids=["one", "one that died and another"])
def test_a_late_process_does_not_hold_back_what_was_released(world: TableWorld, *, dies: bool) -> None:
    """It has looked, and holds the manifest back after an operator released it: it takes that back."""
    published = world.spoil(world.place("a"))
    head = world.table.create(world.layout.table_owner, version(1))
    batch = world.batches().create(1, [published.batched])
    world.table.commit(head, TableChange(1, (), is_refused=True))
    store: Any = world.store

    def others() -> None:
        if dies:
            first = RefusedBatches(world.state(store, "first"))
            first._hold(published.batched, 1, "no")
        RefusedBatches(world.state(store, "second")).record(batch, "no")
        for held in list(world.batches().refused.all_held()):
            world.batches().refused.release(held)

    late: Any = Interrupted(world, before=others)
    RefusedBatches(world.state(late, "late")).record(batch, "no")
    assert world.batches().refused.has(1)
    assert world.held() == []


def test_a_process_that_is_overtaken_holds_back_what_it_held_back(world: TableWorld) -> None:
    """Another one records the batch first, and finds the manifest held back: so it stays."""
    published = world.spoil(world.place("a"))
    head = world.table.create(world.layout.table_owner, version(1))
    batch = world.batches().create(1, [published.batched])
    world.table.commit(head, TableChange(1, (), is_refused=True))
    store: Any = world.store

    def other() -> None:
        RefusedBatches(world.state(store, "other")).record(batch, "no")

    overtaken: Any = Interrupted(world, after=other)
    RefusedBatches(world.state(overtaken, "overtaken")).record(batch, "no")
    assert world.held() == [published]


def test_a_rebuilt_manifest(world: TableWorld) -> None:
    """Takes the place of what was held back; a held rebuild leaves the rows of before, and the next one goes in."""
    first, other = world.spoil(world.place("a")), world.place("b")
    to_the_end(world.process([first, other]))
    second = world.place("a", 2)
    assert world.process([second]).step().visible == [second]
    third = world.spoil(world.place("a", 3))
    before = sorted(world.live())
    assert to_the_end(world.process([third])).keys() == {third}
    assert sorted(world.live()) == before
    fourth = world.place("a", 4)
    assert world.process([fourth]).step().visible == [fourth]


def test_a_record_that_cannot_be_read(world: TableWorld) -> None:
    """A damaged commit holds up nothing but its manifest."""
    first, other = world.place("a"), world.place("b")
    uri = world.layout.outcome(first.key)
    good = world.store.read(uri)
    world.store.put(uri, b"{")
    assert to_the_end(world.process([first, other])).keys() == {first}
    assert sorted(world.live()) == sorted(file.final for file in world.commits[other].outputs)
    world.store.put(uri, good)


def test_a_damaged_reason(world: TableWorld) -> None:
    """That a batch was refused, and what is held back, is known by the records being there."""
    first, other = world.spoil(world.place("a")), world.place("b")
    to_the_end(world.process([first]))
    for uri in (world.layout.refused_batch(1), world.layout.held(first.key)):
        world.store.put(uri, b"{")
    progress = world.process([first]).step()
    assert [*progress.stuck] == [first]
    assert world.process([other]).step().visible == [other]


def test_too_many_are_no_exception(world: TableWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the catalog refuses more and more, the rest waits as for a catalog that is down, and is not held back."""
    monkeypatch.setattr(applying, "MAX_HELD", 2)
    assert MAX_HELD > 2
    bad = [world.spoil(world.place(name)) for name in "abcd"]
    process = world.process(bad, most=1)
    for _ in range(10):
        process.tried()
    assert len(world.held()) == 2
    with pytest.raises(TableRefused, match="2 manifests are already held back"):
        process.step()
    name = next(iter(world.held())).key.id
    world.place(name, 2)  # takes its place, so that there is room for another one
    process.tried()
    assert len(world.held()) == 3
    for each in world.held():
        world.batches().refused.release(next(iter(world.batches().refused.all_held())))
        assert each
    world.unfit.clear()
    world.settle()
    world.check()


def test_what_is_held_back_is_a_stuck_manifest(world: TableWorld) -> None:
    """Each time, by an error that says what to do, and without another request to the catalog."""
    published = world.spoil(world.place("a"))
    to_the_end(world.process([published]))
    commits = world.table.commits
    for _ in range(3):
        [(stuck, error)] = world.process([published]).step().stuck.items()
        assert (stuck, type(error)) == (published, TableHeldBack)
    assert world.table.commits == commits


def test_the_batches_end_as_finished(world: TableWorld) -> None:
    """What is held back does not make a new process read all batches since."""
    published = [world.spoil(world.place("a")), world.place("b")]
    to_the_end(world.process(published))
    process = world.process([world.place("c")])
    for _ in range(2):
        process.step()
    assert world.batches().finished() == len(list(world.recorded()))
    assert (process.committer.named._limits, process.committer.named._members) == ({}, {})
