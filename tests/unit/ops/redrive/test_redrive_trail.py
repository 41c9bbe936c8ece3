"""The trail of redrives: one record a number, ids that lead back to their root, and no number that was used."""

import pytest

from compactor.core.records import Accepted, Redrive
from compactor.ops.redrive.trail import Family, Trail, is_put_back
from tests.support.harness import DAY, GOOD, World

FAMILY = Family("m1", DAY)


@pytest.fixture
def world() -> World:
    """A world with a manifest m1 on record."""
    world = World()
    world.deliver("m1", GOOD)
    world.run_once()
    return world


def redrive(world: World, number: int, *, kind: str = "manifests", root: str = "m1") -> Redrive:
    manifest = world.manifest(f"{root}-r{number}", [world.named("/w/raw/m1-0.ndjson")])
    return Redrive.model_validate(
        {
            "kind": kind,
            "source": root,
            "number": number,
            "counts": {"retries_exhausted": 1},
            "manifest": manifest,
            "run_id": f"run-{number}",
            "redriven_at": world.clock.now(),
        }
    )


def trail(world: World) -> Trail:
    return world.app().trail


def accept(world: World, manifest_id: str, kind: str = "manifest") -> None:
    world.ledger.accept(
        Accepted.model_validate(
            {"manifest_id": manifest_id, "kind": kind, "date": DAY, "accepted_at": world.clock.now()}
        )
    )


def test_one_record_a_number(world: World) -> None:
    """Of two redrives with one number the first one counts; its record is never changed."""
    first = redrive(world, 1)
    assert trail(world).record(FAMILY, first)
    assert not trail(world).record(FAMILY, first.model_copy(update={"run_id": "another"}))
    assert [entry.redrive for entry in trail(world).entries(FAMILY)] == [first]


def test_fates(world: World) -> None:
    """A redrive is unwritten, waits, is accepted, or void; only a void one is out of effect."""
    for number in (1, 2, 3, 4):
        trail(world).record(FAMILY, redrive(world, number))
    trail(world).deliver(redrive(world, 2))
    accept(world, "m1-r3")
    accept(world, "m1-r4", "void")
    entries = trail(world).entries(FAMILY)
    assert [entry.fate for entry in entries] == ["unwritten", "waiting", "accepted", "void"]
    assert [entry.in_effect for entry in entries] == [True, True, True, False]
    assert is_put_back("m1", entries)
    assert not is_put_back("m1", entries[3:])
    assert not is_put_back("m1-r1", entries)


def test_next_number(world: World) -> None:
    """The next number is behind the newest, and its id is used by nothing, not even by a void one."""
    assert trail(world).next_number(FAMILY, []) == 1
    accept(world, "m1-r1", "void")
    accept(world, "m1-r2")
    assert trail(world).next_number(FAMILY, []) == 3
    trail(world).record(FAMILY, redrive(world, 3))
    assert trail(world).next_number(FAMILY, trail(world).entries(FAMILY)) == 4


def test_next_number_after_somebody_got_ahead(world: World) -> None:
    """Whoever has not seen a redrive that was accepted meanwhile is told to look again, and gets no further number."""
    stale = trail(world).entries(FAMILY)
    trail(world).record(FAMILY, redrive(world, 1))
    accept(world, "m1-r1")
    assert trail(world).next_number(FAMILY, stale) is None


def test_families(world: World) -> None:
    """A redriven id leads to its root; an id that only looks like one, and has records, is a root of its own."""
    trail(world).record(FAMILY, redrive(world, 1))
    accept(world, "m1-r7")
    accept(world, "m2-r1")
    assert {name: trail(world).family_of(name) for name in ("m1", "m1-r1", "m1-r7", "m2-r1", "m1-r2", "m3")} == {
        "m1": FAMILY,
        "m1-r1": FAMILY,
        "m1-r7": Family("m1-r7", DAY),
        "m2-r1": Family("m2-r1", DAY),
        "m1-r2": None,
        "m3": None,
    }


def test_records_of_redrives_are_no_attempts(world: World) -> None:
    """The ledger's state of a manifest is what it was before something was redriven from it."""
    before = world.ledger.state(DAY, "m1")
    trail(world).record(FAMILY, redrive(world, 1))
    assert world.ledger.state(DAY, "m1") == before
    assert list(world.ledger.manifests()) == [(DAY, "m1")]
