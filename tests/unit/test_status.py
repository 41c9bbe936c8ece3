"""`status`: what waits, what is open, what is dead and what was done, at a cost that does not grow."""

from compactor.sizing import MIN_LEARNING_BYTES
from compactor.status import Status, read_status
from compactor.steps import Step
from tests.scenes import GOOD, DiedError, World
from tests.twins import FaultyStore


def status(world: World, store: FaultyStore | None = None) -> Status:
    app = world.app(store=store)
    return read_status(app.store, app.layout, app.ledger, app.registry, app.runs, app.clock)


def test_of_nothing() -> None:
    """A place where nothing ever happened has a status too."""
    found = status(World())
    assert (found.waiting_manifests, found.oldest_waiting_seconds, found.open_manifests) == (0, 0, 0)
    assert (found.dead_letters, found.schema_version, found.columns, found.newest_column) == (0, 0, 0, "")
    assert (found.recent, found.ratio, found.input_bytes_per_second) == ((), None, 0)


def test_of_work() -> None:
    """Backlog and its age, open manifests, dead letters by reason, schema and latest commits are told."""
    world = World()
    for number in range(2):
        world.deliver(f"m{number}", GOOD)
    world.put_manifest("bad.json", b"{")
    world.run_once()

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.OPENED:
            raise DiedError

    uri = world.deliver("open", GOOD)
    try:
        world.runner(on_step=die).run([uri])
    except DiedError:
        world.clock.advance(90)
    world.deliver("young", GOOD)
    world.store.put(world.layout.pending_part("2026-01-02-part"), b"{}")
    found = status(world)
    assert (found.waiting_manifests, found.oldest_waiting_seconds, found.open_manifests) == (2, 90, 1)
    assert found.pending_parts == 1
    assert (found.dead_letters, found.dead_letters_by_reason) == (1, {"not_json": 1})
    assert (found.schema_version, found.columns, found.newest_column) == (1, 3, "late")
    assert sorted(commit.manifest_id for commit in found.recent) == ["m0", "m1"]


def test_rates() -> None:
    """The rate is stored input over seconds of work."""
    world = World()
    world.deliver("m", GOOD)
    world.run_once()
    [commit] = world.ledger.recent()
    world.ledger.remember(
        commit.model_copy(
            update={"seconds": 4.0, "input_bytes": 200 - commit.input_bytes, "decoded_bytes": MIN_LEARNING_BYTES}
        )
    )
    found = status(world)
    assert found.input_bytes_per_second == 50
    assert found.ratio == commit.output_bytes / MIN_LEARNING_BYTES


def test_dead_letter_that_is_put_back_meanwhile() -> None:
    """A dead letter that goes away between listing and reading is no error."""
    world = World()
    world.put_manifest("bad.json", b"{")
    world.run_once()

    class VanishingStore(FaultyStore):
        def read(self, uri: str, *, etag: str | None = None) -> bytes:
            if uri.endswith(".reason.json"):
                world.store.delete([uri])
            return super().read(uri, etag=etag)

    assert status(world, VanishingStore(world.store)).dead_letters_by_reason == {}


def test_running_jobs() -> None:
    """A job is shown while it gives signs of life."""
    world = World()
    app = world.app()
    with app.presence:
        assert [run.run_id for run in status(world).runs] == [app.run_id]
    assert status(world).runs == ()
