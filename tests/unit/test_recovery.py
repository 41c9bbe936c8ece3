"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.recovery import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS, Recovery
from compactor.steps import Step
from tests.scenes import DAY, GOOD, DiedError, World
from tests.twins import FaultyStore


def recovery(world: World, store: FaultyStore | None = None) -> Recovery:
    app = world.app(store=store)
    return Recovery(app.store, app.layout, app.ledger, app.batch_runner(world.engine(store)), world.clock)


@pytest.mark.parametrize("age_seconds", [ORPHAN_AGE_SECONDS - 1, ORPHAN_AGE_SECONDS + 1])
@pytest.mark.parametrize("is_open", [False, True])
def test_sweep_staging(age_seconds: float, is_open: bool) -> None:
    """Staging goes when nobody wrote to it for a day, unless its manifest is open."""
    world = World()
    old, young = "/w/state/staging/m1/1/out/0.parquet", "/w/state/staging/m1/2/out/0.parquet"
    world.store.put(old, b"x")
    if is_open:
        world.ledger.open(DAY, "m1")
    world.clock.advance(age_seconds)
    swept = recovery(world).sweep()
    gone = age_seconds > ORPHAN_AGE_SECONDS and not is_open
    assert (swept, world.store.stat(old) is None) == (int(gone), gone)
    world.store.put(old, b"x")
    world.clock.advance(ORPHAN_AGE_SECONDS + 1)
    world.store.put(young, b"y")
    assert recovery(world).sweep() == 0  # the latest write counts for the whole manifest


@pytest.mark.parametrize("age_seconds", [CHECKPOINT_AGE_SECONDS - 1, CHECKPOINT_AGE_SECONDS + 1])
def test_sweep_checkpoints(age_seconds: float) -> None:
    """Checkpoints go when no living run can own them."""
    world = World()
    world.store.put(world.layout.checkpoint("run-1") + "/offsets/0", b"x")
    world.clock.advance(age_seconds)
    assert recovery(world).sweep() == int(age_seconds > CHECKPOINT_AGE_SECONDS)


def test_recover_without_the_objects() -> None:
    """An open manifest is carried on from the ledger, also where its object is gone."""
    world = World()
    uri = world.deliver("m1", GOOD)

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.ATTEMPTED:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([uri])
    world.store.delete([uri])
    batch = recovery(world).recover()
    assert [result.manifest_id for result in batch.results] == ["m1"]
    world.check_exact()


def test_cost_does_not_grow_with_what_is_done() -> None:
    """Recovery asks as little of the store after many manifests as after none."""
    calls = []
    world = World()
    for count in (0, 12):
        for number in range(count):
            world.deliver(f"m{number}", GOOD)
        world.run_once()
        store = FaultyStore(world.store)
        recovery(world, store).recover()
        recovery(world, store).sweep()
        calls.append(store.calls["any"])
    assert calls[0] == calls[1]
