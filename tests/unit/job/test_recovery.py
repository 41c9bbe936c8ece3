"""Recovery: what earlier runs left is finished or swept, and the cost of it does not grow with what is done."""

import pytest

from compactor.core.crash_points import Step
from compactor.job.recovery import Recovery
from compactor.job.retention.cleaner import CHECKPOINT_AGE_SECONDS, ORPHAN_AGE_SECONDS
from tests.support.fakes import FaultyStore
from tests.support.harness import GOOD, DiedError, World


def recovery(world: World, store: FaultyStore | None = None) -> Recovery:
    app = world.app(store=store)
    return Recovery(app.store, app.layout, app.ledger, app.batch_runner(world.engine(store)), app.cleaner)


@pytest.mark.parametrize("over", [False, True])
def test_sweep(over: bool) -> None:
    """A run sweeps up orphaned staging and checkpoints of dead runs before it listens, once they are old enough."""
    world = World()
    world.deliver("m1", GOOD)
    world.run_once()
    places = [f"{world.layout.staging('m1', 7)}0.parquet", world.layout.checkpoint("run-1") + "/offsets/0"]
    for uri, age_seconds in zip(places, (ORPHAN_AGE_SECONDS, CHECKPOINT_AGE_SECONDS), strict=True):
        world.store.put(uri, b"x")
        world.clock.advance(age_seconds + (1 if over else -1))
        recovery(world).sweep()
        assert (world.store.stat(uri) is None) == over
        world.store.delete([uri])


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
