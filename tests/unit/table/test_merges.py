"""Merges beside committers, rebuilds and other merges, at every step and with any answer: each row once, none lost."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import Any

import pytest

from compactor.core.documents.changes import Why
from compactor.core.errors import CompactorError, StuckError
from compactor.ledger import change_log
from compactor.table import changes, committer
from compactor.table.applying import Applied, Refused
from compactor.table.named import Published
from tests.support.harness import DiedError
from tests.support.memory_table import Answer
from tests.support.table_processes import Meeting, TableWorld
from tests.unit.table.test_committer import ANSWERS, at, watched


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in a fixed order, so that each case is the same each time."""

    def in_turn(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(work, items)

    for module in (committer, changes, change_log):
        monkeypatch.setattr(module, "map_ordered", in_turn)


def committed(*names: str) -> tuple[TableWorld, list[Published]]:
    """A world with manifests that are done."""
    world = watched(TableWorld())
    published = [world.place(name) for name in names]
    world.process(published).step()
    world.check()
    return world, published


def listed(world: TableWorld) -> list[str]:
    """The names of the live files, as the table lists them."""
    return sorted(file.uri.rpartition("/")[2].partition(".")[0] for file in world.table.live_files())


def merge_in(world: TableWorld, *published: Published, name: str = "x", before: Meeting = lambda: None) -> Any:
    """What comes of a merge; its process may meet others before each call."""
    merge = world.written_merge(*published, name=name)
    return world.process(before=before).committer.merge(merge)


def test_a_merge() -> None:
    """One change puts a file in place of others, with their rows; later batches go on as before."""
    world, (a, b, c) = committed("a", "b", "c")
    taken = merge_in(world, a, b)
    assert isinstance(taken, Applied)
    assert (taken.number, taken.files, taken.manifests) == (2, 1, 0)
    assert listed(world) == ["00000001-x-00001", "c-00001", "c-00002"]
    assert merge_in(world, a, c, name="y").number == 3  # one that has merged files among its parts
    assert listed(world) == ["00000001-x-00001", "c-00001", "c-00002"], "its parts are no whole files of the table"
    assert merge_in(world, a, b, c, name="z").files == 1
    assert listed(world) == ["00000003-z-00001"]
    world.process([world.place("d")]).step()
    world.check()


def test_a_rebuild_takes_merged_files_apart() -> None:
    """The batch of a rebuilt manifest puts the other parts back."""
    world, (a, b, c) = committed("a", "b", "c")
    merge_in(world, a, b, c)
    process = world.process([world.place("b", 2)])
    assert process.step().visible
    assert listed(world) == ["a-00001", "a-00002", "b-00003", "b-00004", "c-00001", "c-00002"]
    world.check()


def test_what_was_begun_before_a_rebuild() -> None:
    """Is never taken: its files have rows that were replaced. Nor is one that another merge overtook."""
    world, (a, b, c) = committed("a", "b", "c")
    first, second = world.written_merge(a, b), world.written_merge(b, c, name="y")
    world.process([world.place("d")]).step()  # a batch that only adds files is no hindrance
    assert isinstance(world.process().committer.merge(first), Applied)
    assert world.process().committer.merge(second) is None
    third = world.written_merge(a, b, c, name="z")
    world.process([world.place("a", 2)]).step()
    assert world.process().committer.merge(third) is None
    world.check()


def test_a_part_that_is_gone() -> None:
    """A rebuild that would put it back waits, with the reason, until its manifest is rebuilt, too."""
    world, (a, b) = committed("a", "b")
    merge_in(world, a, b)
    gone = world.commits[a].outputs[0].final
    world.store.delete([gone])
    rebuilt = world.place("b", 2)
    process = world.process([rebuilt])
    progress = process.step()
    assert isinstance(progress.stuck[rebuilt], StuckError)
    assert gone in str(progress.stuck[rebuilt])
    assert listed(world) == ["00000001-x-00001"]
    both = world.process([world.place("a", 2), rebuilt])
    assert len(both.step().visible) == 2
    world.check()


def test_a_damaged_record() -> None:
    """Holds up a manifest that was rebuilt, and no other one: nothing is doubled, and the rest goes on."""
    world, (a, b) = committed("a", "b")
    merge = world.written_merge(a, b)
    world.process().committer.merge(merge)
    uri = world.layout.change(Why.MERGED, "", merge.id)
    whole = world.store.read(uri)
    world.store.put(uri, b"{}")
    rebuilt = world.place("b", 2)
    world.table.on_change = lambda _: None  # it reads the record, too
    c = world.place("c")
    progress = world.process([rebuilt, c]).committer.commit([rebuilt, c])
    assert "is not in the table" in str(progress.stuck[rebuilt])
    assert [each.key.id for each in progress.visible] == ["c"]
    assert listed(world) == ["00000001-x-00001", "c-00001", "c-00002"]
    world.store.put(uri, whole)
    world.process([rebuilt, c]).step()
    world.process([rebuilt]).step()
    world.check()


def test_a_merged_file_that_is_gone() -> None:
    """Before the table has it, its batch changes nothing; afterwards, its parts can come back."""
    world, (a, b) = committed("a", "b")
    merge = world.written_merge(a, b)
    world.store.delete([merge.files[0].uri])
    taken = world.process().committer.merge(merge)
    assert isinstance(taken, Applied)
    assert taken.files == 0
    world.check()
    lost = world.written_merge(a, b, name="y")
    world.process().committer.merge(lost)
    world.store.delete([lost.files[0].uri])
    taken = world.process().committer.unmerge([lost.files[0].uri])
    assert isinstance(taken, Applied)
    assert taken.files == 4
    assert listed(world) == ["a-00001", "a-00002", "b-00001", "b-00002"]
    world.check()


def test_a_merge_that_is_refused_for_ever() -> None:
    """The table passes over it, and nothing is held back: its parts are there."""
    world, (a, b) = committed("a", "b")
    merge = world.written_merge(a, b)
    world.unfit.add(merge.files[0].uri)
    assert isinstance(world.process().committer.merge(merge), Refused)
    world.process([world.place("c")]).step()
    world.check()
    assert listed(world) == ["a-00001", "a-00002", "b-00001", "b-00002", "c-00001", "c-00002"]


def test_a_table_that_is_made_again() -> None:
    """Has the merged files again that are still there, and the parts of others."""
    world, (a, b, c) = committed("a", "b", "c")
    first = world.written_merge(a, b)
    world.process().committer.merge(first)
    merge_in(world, a, b, c, name="y")
    before = listed(world)
    world.store.delete([first.files[0].uri])  # nothing needs it any more
    world.table.drop()
    again = world.process(replays=True)
    for _ in range(4):
        again.step()
    assert listed(world) == before == ["00000002-y-00001"]
    world.check()
    world.process([world.place("a", 2)]).step()
    world.store.delete(file.final for file in world.commits[a].outputs)
    world.table.drop()
    again = world.process(replays=True)
    for _ in range(5):
        again.step()
    assert listed(world) == ["a-00003", "a-00004", "b-00001", "b-00002", "c-00001", "c-00002"]
    world.check()


def meet(step: int, answers: tuple[Answer, ...], what: str) -> TableWorld:
    """A merge; before its nth call, another process takes a whole step of its own."""
    world, (a, b, c) = committed("a", "b", "c")
    world.table.answers = cycle(answers).__next__

    def others() -> None:
        with contextlib.suppress(CompactorError):
            match what:
                case "commits":
                    world.process([world.place("d")]).step()
                case "rebuilds":
                    world.process([world.place("a", 2)]).step()
                case "merges":
                    merge_in(world, b, c, name="y")
                case "undoes":
                    live = [file.uri for file in world.table.live_files() if "_table/merged" in file.uri]
                    world.process().committer.unmerge(live)
                case "rewrites":
                    world.table.rewrite()
        world.table.land()

    with contextlib.suppress(CompactorError):
        merge_in(world, a, b, before=at(step, others))
    return world


@pytest.mark.parametrize("what", ["commits", "rebuilds", "merges", "undoes", "rewrites"])
@pytest.mark.parametrize("answers", ANSWERS, ids=lambda each: "-".join(answer.value for answer in each))
def test_others_at_every_step(answers: tuple[Answer, ...], what: str) -> None:
    """Whatever they do and whatever the catalog answers, each row is there once."""
    for step in range(1, 26):
        world = meet(step, answers, what)
        world.settle()
        world.check()


@pytest.mark.parametrize("answers", ANSWERS, ids=lambda each: "-".join(answer.value for answer in each))
def test_a_death_at_every_step(answers: tuple[Answer, ...]) -> None:
    """What was on record is applied by the next process, before anything else; else nothing has happened."""

    def die() -> None:
        raise DiedError

    for step in range(1, 26):
        world, (a, b, _) = committed("a", "b", "c")
        world.table.answers = cycle(answers).__next__
        with contextlib.suppress(DiedError, CompactorError):
            merge_in(world, a, b, before=at(step, die))
        world.process([world.place("d")]).tried()
        world.settle()
        world.check()
