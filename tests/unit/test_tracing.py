"""`trace`: every place that a file can be in."""

import pytest

from compactor.planning import claim_key
from compactor.records import Accepted
from compactor.steps import Step
from compactor.tracing import Trace, Tracer, Whereabouts
from tests.scenes import DAY, FLAWED, GOOD, DiedError, World


@pytest.fixture
def world() -> World:
    return World(stream={"max_attempts": 1})


def trace(world: World, uri: str, *, with_claims: bool = False) -> Trace:
    app = world.app()
    claims = world.claims if with_claims else None
    return Tracer(app.store, app.layout, app.ledger, claims, app.clock, allowed_prefixes=["/w/raw"]).trace(uri)


def stopped_at(world: World, step: Step, *contents: bytes) -> str:
    """A manifest whose driver died at a step; the URI of its first file."""

    def die(found: Step, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([world.deliver("m1", *contents)])
    return "/w/raw/m1-0.ndjson"


@pytest.mark.parametrize("with_claims", [False, True])
@pytest.mark.parametrize(
    ("step", "whereabouts"),
    [
        (None, Whereabouts.WAITING),
        (Step.ACCEPTED, Whereabouts.WAITING),
        (Step.ATTEMPTED, Whereabouts.IN_WORK),
        (Step.VERIFIED, Whereabouts.IN_WORK),
        (Step.DECIDED, Whereabouts.DECIDED),
        (Step.PUBLISHED, Whereabouts.DECIDED),
        (Step.DONE, Whereabouts.DONE),
        (Step.CLOSED, Whereabouts.DONE),
    ],
)
def test_along_the_life(world: World, step: Step | None, whereabouts: Whereabouts, with_claims: bool) -> None:
    """A file is where its manifest is, found by its claim or, without claims, by looking."""
    if step is None:
        world.deliver("m1", GOOD, FLAWED)
    else:
        stopped_at(world, step, GOOD, FLAWED)
    file = world.named("/w/raw/m1-0.ndjson")
    if with_claims:
        world.claims.claim([claim_key(file)], "m1", now=world.clock.now(), lease_seconds=1)
    found = trace(world, file.uri, with_claims=with_claims)
    assert (found.whereabouts, found.manifest_id, found.exists) == (whereabouts, "m1", True)


def test_outputs_and_rejects(world: World) -> None:
    """A file that is done names the Parquet files that its rows and its rejects may be in."""
    world.deliver("m1", GOOD, FLAWED)
    world.run_once()
    commit = world.commit("m1")
    clean, flawed = trace(world, "/w/raw/m1-0.ndjson"), trace(world, "file:///w/raw/m1-1.ndjson")
    assert (clean.outputs, clean.rejects) == ([file.final for file in commit.outputs], [])
    assert (flawed.outputs, flawed.rejects) == (clean.outputs, [file.final for file in commit.rejects])
    assert flawed.report == commit.files[1]


def test_unknown(world: World) -> None:
    """A file that no manifest names is unknown, whether it exists or not."""
    world.file("a", GOOD)
    assert [(each.whereabouts, each.exists) for each in (trace(world, "/w/raw/a"), trace(world, "/w/raw/b"))] == [
        (Whereabouts.UNKNOWN, True),
        (Whereabouts.UNKNOWN, False),
    ]


def test_claimed(world: World) -> None:
    """A file that is claimed for a manifest which is not written yet, or never will be, says so."""
    file = world.file("a", GOOD)
    world.claims.claim([claim_key(file)], "m1", now=world.clock.now(), lease_seconds=1)
    found = trace(world, file.uri, with_claims=True)
    assert (found.whereabouts, found.manifest_id, found.message) == (Whereabouts.CLAIMED, "m1", "")
    world.ledger.accept(Accepted(manifest_id="m1", kind="void", date=DAY, accepted_at=world.clock.now()))
    found = trace(world, file.uri, with_claims=True)
    assert (found.whereabouts, found.message) == (
        Whereabouts.CLAIMED,
        "manifest m1 was given up by its planner; plan again",
    )


def test_set_aside(world: World) -> None:
    """A file that was set aside alone tells why, also when it is gone."""
    uri = world.deliver("m1", GOOD, GOOD)
    world.store.delete(["/w/raw/m1-0.ndjson"])
    world.runner().run([uri])
    found = trace(world, "/w/raw/m1-0.ndjson")
    assert (found.whereabouts, found.exists) == (Whereabouts.SET_ASIDE, False)
    assert found.message.startswith("missing: ")


def test_dead_lettered(world: World) -> None:
    """A file of a manifest that is a dead letter is found by its manifest, without claims too."""
    uri = stopped_at(world, Step.ATTEMPTED, GOOD)
    world.run_once()
    found = trace(world, uri)
    assert (found.whereabouts, found.manifest_id) == (Whereabouts.DEAD_LETTERED, "m1")
    assert found.message.startswith("retries_exhausted: ")
