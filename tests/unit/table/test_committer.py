"""Committers of one table, interleaved at every step, with answers that are lost or late: each file once, none lost."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from typing import Any

import pytest

from compactor.core.errors import OperatorError, StoreUnavailable, StuckError, TableCommitUnknown, TableConflict
from compactor.core.layout import base_name
from compactor.table import changes, committer
from compactor.table.applying import Applier
from compactor.table.named import Published
from tests.support.harness import DiedError
from tests.support.memory_table import Answer
from tests.support.table_catalogs import version
from tests.support.table_processes import Process, TableWorld

ANSWERS = (
    (Answer.WELL,),
    (Answer.LOST, Answer.WELL),
    (Answer.UNAVAILABLE, Answer.LOST),
    (Answer.LATE, Answer.WELL),
    (Answer.LATE, Answer.LATE, Answer.LOST),
)


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in a fixed order, so that each case is the same each time."""

    def in_turn(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(work, items)

    monkeypatch.setattr(committer, "map_ordered", in_turn)
    monkeypatch.setattr(changes, "map_ordered", in_turn)


@pytest.fixture
def world() -> TableWorld:
    return watched(TableWorld())


def watched(world: TableWorld) -> TableWorld:
    """A world in which nothing is done before it is visible."""
    create = world.store.create

    def checked(uri: str, data: bytes) -> bool:
        if base_name(uri).startswith("done"):
            world.check_done(uri)
        return create(uri, data)

    world.store.create = checked  # type: ignore[method-assign]
    return world


def at(step: int, what: Callable[[], None]) -> Callable[[], None]:
    """Does something before the nth call, once."""
    calls = 0

    def before() -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            what()

    return before


def test_a_batch(world: TableWorld) -> None:
    """The files of several manifests become visible in one change, and then they are done."""
    process = world.process([world.place("a"), world.place("b", schema=2)])
    progress = process.step()
    assert progress.applied is not None
    assert (progress.applied.number, progress.applied.manifests, progress.applied.files) == (1, 2, 4)
    head = world.table.head()
    assert head is not None
    assert (head.fence, head.schema_version, head.owner) == (1, 2, "/w/state/")
    world.check()
    assert process.step().applied is None
    assert world.table.commits == 1


def test_no_more_than_so_many_at_once(world: TableWorld) -> None:
    """The rest goes into the next batch."""
    process = world.process([world.place(name) for name in "abc"], most=2)
    assert [len(process.step().visible) for _ in range(3)] == [2, 1, 0]
    world.check()


def meet(first: int, second: int, answers: tuple[Answer, ...], *, overlap: bool) -> TableWorld:
    """Three processes: before its nth call, each lets the next one take a whole step."""
    world = watched(TableWorld())
    world.table.answers = cycle(answers).__next__
    a, b, c = world.place("a"), world.place("b"), world.place("c")
    third = world.process([b, c] if overlap else [c], name="third")

    def third_step() -> None:
        third.tried()
        world.table.land()

    other = world.process([a, b] if overlap else [b], name="second", before=at(second, third_step))
    one = world.process([a, b] if overlap else [a], name="first", before=at(first, other.tried))
    for process in (one, other, third):
        process.tried()
    world.settle()
    return world


@pytest.mark.parametrize("overlap", [False, True], ids=["own", "same"])
def test_three_committers_at_every_step(*, overlap: bool) -> None:
    """Whatever they find of each other, and whatever the catalog answers, each file is there once."""
    for first in range(1, 22):
        for second in range(1 + first % 3, 22, 3):
            world = meet(first, second, ANSWERS[(first + second) % len(ANSWERS)], overlap=overlap)
            world.check()


@pytest.mark.parametrize("answers", ANSWERS, ids=lambda each: "-".join(answer.value for answer in each))
def test_a_death_at_every_step(answers: tuple[Answer, ...]) -> None:
    """What a process that died had recorded is applied before anything else, once."""

    def die() -> None:
        raise DiedError

    for step in range(1, 30):
        world = watched(TableWorld())
        world.table.answers = cycle(answers).__next__
        published = [world.place("a"), world.place("b")]
        dying = world.process(published[:1], before=at(step, die))
        with contextlib.suppress(DiedError):
            dying.tried()
        world.process(published).tried()
        world.settle()
        world.check()


@pytest.mark.parametrize("is_first_on_record", [False, True], ids=["none", "first"])
def test_others_are_ahead_at_every_step(*, is_first_on_record: bool) -> None:
    """They have the table take a batch, record the next one and die. A process that read an earlier head goes on."""
    for step in range(1, 25):
        world = watched(TableWorld())
        a, b, c = (world.place(name) for name in "abc")
        if is_first_on_record:
            world.table.create(world.layout.table_owner, version(1))
            world.batches().create(1, [b.batched])

        def others(world: TableWorld = world, b: Published = b, c: Published = c) -> None:
            head = world.process([b]).committer.settled()
            if not head.fence:
                world.process([b]).step()
            world.batches().create(2, [c.batched])

        process = world.process([a], before=at(step, others))
        with contextlib.suppress(TableConflict):
            process.step()
        world.settle()
        world.check()


def test_another_program_changes_the_table(world: TableWorld) -> None:
    """A compaction or an expiry of snapshots between reading and committing costs one more try, and nothing else."""
    for step in range(1, 22):
        published = world.place(f"m{step}")

        def stranger() -> None:
            if world.table.commits:
                world.table.rewrite()
                world.table.forget()

        world.process([published], before=at(step, stranger)).step()
    world.check()


def test_a_rebuilt_manifest(world: TableWorld) -> None:
    """Its files take the place of those of the generation before, in one change, also beside a late committer."""
    for step in range(1, 25):
        name = f"m{step}"
        first = world.place(name)
        world.process([first]).step()
        second = world.place(name, 2)
        late = world.process([first, world.place(f"other{step}")])
        world.process([second], before=at(step, late.tried)).tried()
        world.settle()
        assert second in {Published(each.key, each.generation) for batch in world.recorded() for each in batch}
    world.check()


def test_a_generation_that_was_never_committed(world: TableWorld) -> None:
    """A rebuild before the first commit: the late process that waits with the first generation leaves it out."""
    for step in range(1, 25):
        first = world.place(f"m{step}")
        late = world.process([first])

        def rebuilt(step: int = step) -> None:
            world.process([world.place(f"m{step}", 2)]).step()

        late.committer.state.store.before = at(step, rebuilt)  # type: ignore[attr-defined]
        late.tried()
        if first not in late.published and Published(first.key, 2) not in world.commits:
            world.place(f"m{step}", 2)
        world.settle()
    world.check()


def test_a_generation_that_is_no_longer_valid(world: TableWorld) -> None:
    """Is in no batch, also before the one that takes its place is placed."""
    first, _ = world.place("a"), world.place("a", 2)
    progress = world.process([first]).step()
    assert (progress.superseded, progress.applied) == ([first], None)


def test_no_blind_retry(world: TableWorld) -> None:
    """After an answer that does not tell, the change is sent again only for a head that was read since."""
    answers = [Answer.LATE, Answer.UNAVAILABLE, Answer.LOST]
    world.table.answers = iter(answers).__next__
    progress = world.process([world.place("a")]).step()
    assert progress.applied is not None
    assert world.table.commits == 1
    assert not world.table.land()
    world.check()


def test_a_catalog_that_never_tells(world: TableWorld) -> None:
    """After a few tries the caller is told, and published files stay so; later it is committed by the same record."""
    world.table.answers = lambda: Answer.UNAVAILABLE
    process = world.process([world.place("a")])
    for _ in range(3):
        with pytest.raises(TableCommitUnknown):
            process.step()
    world.table.is_down = True
    with pytest.raises(StoreUnavailable):
        process.step()
    world.table.is_down = False
    world.table.answers = lambda: Answer.WELL
    process.published.append(world.place("b"))
    process.step()
    process.step()
    assert len(list(world.recorded())) == 2
    world.check()


def test_a_table_that_always_changes(world: TableWorld) -> None:
    """A committer that never comes first says so."""
    process = world.process([world.place("a")])
    world.process([world.place("z")]).step()

    def raced() -> Answer:
        world.table.rewrite()
        return Answer.WELL

    world.table.answers = raced
    with pytest.raises(TableConflict):
        process.step()


def test_a_table_of_another_state(world: TableWorld) -> None:
    """Its fence says nothing of these batches."""
    world.table.create("/other/state/", version(1))
    with pytest.raises(OperatorError, match="expected a table of /w/state/ only"):
        world.process([world.place("a")]).step()
    assert list(world.recorded()) == []


def test_a_state_that_lacks_a_batch(world: TableWorld) -> None:
    """The table took more than is on record: the state was restored, or is another one."""
    world.process([world.place("a")]).step()
    world.store.delete([world.layout.table_batch(1), world.layout.finished_batches])
    with pytest.raises(OperatorError, match="batch 1 is not on record"):
        world.process([world.place("b")]).step()


@pytest.mark.parametrize("lost", [4, 1], ids=["dropped", "restored"])
def test_a_table_that_was_lost(world: TableWorld, lost: int) -> None:
    """Nothing is committed to a new or an old one before a person says so; then what it lacks is applied, in order."""
    for name in "abc":
        world.process([world.place(name)]).step()
    backup = world.table._table
    rebuilt = world.place("a", 2)
    world.process([rebuilt]).step()
    world.store.delete([file.final for file in world.commits[Published(rebuilt.key, 1)].outputs])
    before = sorted(world.live())
    if lost == 1:
        world.settle()
        world.table._table = backup
    else:
        world.table.drop()
    left = world.table._table
    with pytest.raises(OperatorError, match="`compactor table repair`"):
        world.process([world.place("d")]).step()
    assert world.table._table is left, "changed by the job"
    again = world.process(replays=True)
    numbers = [found.number for found in iter(lambda: again.step().applied, None)]
    assert numbers == [1, 2, 3, 4][-lost:]
    assert sorted(world.live()) == before
    world.settle()
    world.check()


def test_rows_that_another_program_moved(world: TableWorld) -> None:
    """A rebuild whose earlier files are gone from the table would double rows: it is left to a person, alone."""
    world.process([world.place("a")]).step()
    world.table.rewrite(lambda file: type(file)(f"{file.uri}.merged", file.size_bytes, file.records, file.date))
    second, other = world.place("a", 2), world.place("b")
    progress = world.process([second, other]).step()
    assert progress.visible == [other]
    [(stuck, why)] = progress.stuck.items()
    assert stuck == second
    assert isinstance(why, StuckError)
    assert "another program" in str(why)


@pytest.mark.parametrize("replays", [False, True], ids=["job", "rebuild"])
def test_rows_that_were_never_in_the_table(*, replays: bool) -> None:
    """They are from before there was a table. No other program can have moved them: what was rebuilt goes in."""
    world = TableWorld()
    world.process([world.place("other")]).step()
    second = rebuilt_from_before(world)
    assert world.process([second], replays=replays).step().visible == [second]
    world.check()


@pytest.mark.parametrize("replays", [False, True])
def test_a_generation_whose_batch_came_too_late(
    world: TableWorld, monkeypatch: pytest.MonkeyPatch, *, replays: bool
) -> None:
    """The next one was decided before its batch had an effect: it was never in the table, so no program moved it."""
    world.process([world.place("a")]).step()
    second = world.place("a", 2)
    with monkeypatch.context() as patch, contextlib.suppress(DiedError):
        patch.setattr(Applier, "applied", _die)
        world.process([second]).step()
    third = world.place("a", 3)
    if replays:
        world.table.drop()
    process = world.process([third], replays=replays)
    for _ in range(5):
        assert not process.step().stuck
    assert sorted(world.live()) == sorted(each.final for each in world.ledger().outcome_of(third.key, 3).outputs)


def _die(*_: object) -> None:
    raise DiedError


def test_an_outcome_that_cannot_be_read_holds_up_no_other(world: TableWorld) -> None:
    """Of an earlier generation of one that was rebuilt: only that one is stuck."""
    world.process([world.place("a")]).step()
    second, other = world.place("a", 2), world.place("b")
    world.store.put(world.layout.outcome(second.key, 1), b"{")
    process = world.process([second, other])
    progress = process.step()
    assert set(progress.stuck) == {second}
    assert other in {*progress.visible, *process.step().visible}


def test_rows_of_a_generation_between(world: TableWorld) -> None:
    """A rebuild was rebuilt before its batch: only the generation that the table has is looked for in it."""
    world.process([world.place("a")]).step()
    world.place("a", 2)
    third = world.place("a", 3)
    assert world.process([third]).step().visible == [third]
    world.check()


@pytest.mark.parametrize("replays", [False, True], ids=["job", "rebuild"])
def test_rows_that_another_program_moved_twice_rebuilt(world: TableWorld, *, replays: bool) -> None:
    """Of two earlier generations, the one that the table took counts, whatever batches there are beside it."""
    for name in ("b", "a", "c"):
        world.process([world.place(name)]).step()
    world.place("a", 2)
    world.table.rewrite(lambda file: type(file)(f"{file.uri}.merged", file.size_bytes, file.records, file.date))
    third = world.place("a", 3)
    assert [*world.process([third], replays=replays).step().stuck] == [third]


def rebuilt_from_before(world: TableWorld) -> Published:
    """A manifest that was done before there was a table, and was rebuilt."""
    world.ledger().finish(world.place("a").key)
    return world.place("a", 2)


def test_a_batch_that_cannot_be_read_while_rows_are_looked_for() -> None:
    """Only the manifest waits whose rows may be in it."""
    world = TableWorld()
    for name in "bd":
        world.process([world.place(name)]).step()
    second, other = rebuilt_from_before(world), world.place("c")
    world.store.put(world.layout.table_batch(1), b"{")
    progress = world.process([second, other]).step()
    assert (progress.visible, [*progress.stuck]) == ([other], [second])


def test_the_cost_does_not_grow(world: TableWorld) -> None:
    """A batch costs as many calls after a hundred others as after the first, in a new process, too."""

    def calls(process: Process) -> int:
        process.step()
        return len(counted)

    counted: list[None] = []
    costs = []
    for number in range(100):
        counted.clear()
        published = world.place(f"m{number}")
        costs.append(calls(world.process([published], before=lambda: counted.append(None))))
    assert set(islice(costs, 1, None)) == {costs[1]}
    assert costs[1] <= 16
