"""The ledger: records are made once, and say how far a manifest has come."""

import pytest

from compactor.core.records import Accepted, RecentCommit
from compactor.ledger.ledger import RECENT_SLOTS, Ledger
from tests.support.harness import DAY, GOOD, World


@pytest.fixture
def world() -> World:
    return World()


def other(world: World) -> Ledger:
    """The ledger of another driver."""
    return Ledger(world.store, world.layout, world.clock, "another-run")


def test_accept_once(world: World) -> None:
    """An id belongs to the first that asked, for ever."""
    first = Accepted(manifest_id="m1", kind="manifest", date=DAY, digest="1", accepted_at=world.clock.now())
    second = first.model_copy(update={"kind": "void", "digest": "2"})
    assert world.ledger.accepted("m1") is None
    assert world.ledger.accept(first) == first
    assert other(world).accept(second) == first
    assert world.ledger.accepted("m1") == first


def test_decide_once(world: World) -> None:
    """Commit and dead letter exclude each other: whoever comes second gets what holds."""
    uri = world.deliver("m1", GOOD)
    world.runner().run([uri])
    commit = world.commit("m1")
    world.put_manifest("bad.json", b"")
    world.run_once()
    letter = world.dead_letter("bad").model_copy(update={"manifest_id": "m1", "date": commit.date})
    assert other(world).decide(letter) == commit
    assert world.ledger.outcome(DAY, "m1") == commit


def test_attempts_are_numbered_across_drivers(world: World) -> None:
    """No two attempts share a number, also where a driver does not know of the other's."""
    numbers = [each.begin(DAY, "m1", after=0, alone=True).number for each in (world.ledger, other(world), world.ledger)]
    assert numbers == [1, 2, 3]
    state = world.ledger.state(DAY, "m1")
    assert [each.attempt.number for each in state.attempts] == [1, 2, 3]
    assert (state.outcome, state.is_done) == (None, False)


def test_ten_attempts_stay_in_order(world: World) -> None:
    """Attempts are in the order of their numbers, not of their names."""
    ledger = world.ledger
    for number in range(11):
        attempt = ledger.begin(DAY, "m1", after=number, alone=False)
        ledger.fail(DAY, attempt, error=f"e{attempt.number}", passing=False)
    errors = [each.failure.error for each in ledger.state(DAY, "m1").attempts if each.failure]
    assert errors == [f"e{number}" for number in range(1, 12)]


def test_first_word_about_an_end_holds(world: World) -> None:
    """How an attempt ended is on record once."""
    attempt = world.ledger.begin(DAY, "m1", after=0, alone=True)
    world.ledger.fail(DAY, attempt, error="first", passing=True)
    world.clock.advance(1)
    world.ledger.fail(DAY, attempt, error="second", passing=False)
    [state] = world.ledger.state(DAY, "m1").attempts
    assert state.failure is not None
    assert (state.failure.error, state.failure.passing) == ("first", True)


def test_open_markers(world: World) -> None:
    """The index holds what was opened and not closed."""
    for name in ("a", "b", "b"):
        world.ledger.open(DAY, name)
    world.ledger.close("a")
    world.ledger.close("a")
    assert list(world.ledger.open_ids()) == ["b"]


def test_manifests_of_a_day(world: World) -> None:
    """Manifests are listed with their days, once each, however many records they have."""
    for day, name in (("2026-01-01", "x"), (DAY, "a"), (DAY, "a"), (DAY, "b")):
        world.ledger.begin(day, name, after=0, alone=True)
    assert [*world.ledger.manifests(DAY)] == [(DAY, "a"), (DAY, "b")]
    assert [*world.ledger.manifests()] == [("2026-01-01", "x"), (DAY, "a"), (DAY, "b")]


def remember(world: World, ledger: Ledger, count: int) -> None:
    for _ in range(count):
        world.clock.advance(1)
        ledger.remember(
            RecentCommit(
                manifest_id=f"{world.clock.now().timestamp():.0f}",
                date=DAY,
                decoded_bytes=1,
                input_bytes=1,
                output_bytes=1,
                output_files=1,
                input_files=1,
                records=1,
                rejected_lines=0,
                seconds=1,
                decided_at=world.clock.now(),
            )
        )


def test_ring_of_recent_commits(world: World) -> None:
    """The ring keeps the latest commits, oldest first, and goes on in its place after a restart."""
    start = world.clock.now().timestamp()
    remember(world, world.ledger, RECENT_SLOTS - 2)
    remember(world, other(world), 5)
    recent = world.ledger.recent()
    expected = [f"{start + number:.0f}" for number in range(4, RECENT_SLOTS + 4)]
    assert [commit.manifest_id for commit in recent] == expected


@pytest.mark.parametrize(("name", "left"), [("000.json", 1), ("readme.txt", 3), ("zzz.json", 3)])
def test_ring_with_foreign_objects(world: World, name: str, left: int) -> None:
    """What cannot be read in the ring, which is a cache, is passed over."""
    remember(world, world.ledger, 2)
    world.clock.advance(1)
    world.store.put(world.layout.recent_folder + name, b"{}")
    remember(world, other(world), 1)
    assert len(world.ledger.recent()) == left
