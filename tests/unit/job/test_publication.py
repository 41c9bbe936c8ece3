"""Publishing a decided manifest: every step may be repeated by anybody, and nothing that is another's is touched."""

import pytest

from compactor.core.crash_points import Step
from compactor.core.errors import StagingLost
from compactor.core.records import Accepted, Commit
from compactor.job.publication import Publisher
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, World


def decided(world: World) -> tuple[Accepted, Commit]:
    """A manifest whose driver died when it was decided."""

    def die(step: Step, _manifest_id: str) -> None:
        if step == Step.DECIDED:
            raise DiedError

    uri = world.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        world.runner(on_step=die).run([uri])
    accepted = world.ledger.accepted("m1")
    assert accepted is not None
    return accepted, world.commit("m1")


def publisher(world: World) -> Publisher:
    app = world.app()
    return Publisher(app.store, app.layout, app.ledger)


def test_again_and_again() -> None:
    """Rolling forward once more, also long after done, changes nothing."""
    world = World()
    accepted, commit = decided(world)
    publisher(world).roll_forward(accepted, commit)
    before = {info.uri: world.store.read(info.uri) for info in world.store.list("/w/")}
    publisher(world).roll_forward(accepted, commit)
    assert {info.uri: world.store.read(info.uri) for info in world.store.list("/w/")} == before
    world.check_exact()


def test_staging_lost_before_done() -> None:
    """Where staging is gone though nobody is done, nothing is called done."""
    world = World()
    accepted, commit = decided(world)
    world.store.delete([commit.outputs[0].staged])
    with pytest.raises(StagingLost, match=r"m1.*found nothing at .*expected \d+ bytes"):
        publisher(world).roll_forward(accepted, commit)
    assert not world.ledger.is_done(DAY, "m1")
    assert world.waiting() == [world.layout.manifest("m1")]


def test_staging_lost_after_publishing() -> None:
    """A file that is in its final place, as long as the commit says, needs its staging no more."""
    world = World()
    accepted, commit = decided(world)
    world.store.copy(commit.outputs[0].staged, commit.outputs[0].final)
    world.store.delete([commit.outputs[0].staged])
    publisher(world).roll_forward(accepted, commit)
    assert world.ledger.is_done(DAY, "m1")
    world.check_exact()


def test_output_removed_after_done() -> None:
    """A driver that is late publishes nothing again, also where the owner of the output has removed it since."""
    world = World()
    accepted, commit = decided(world)
    publisher(world).roll_forward(accepted, commit)
    world.store.delete([file.final for file in commit.outputs])
    publisher(world).roll_forward(accepted, commit)
    assert world.output_rows() == {}


@pytest.mark.parametrize("replaced", [False, True])
def test_original_taken_away_meanwhile(replaced: bool) -> None:
    """A manifest that was removed or replaced after its acceptance is archived as accepted; its successor stays."""
    world = World()
    accepted, commit = decided(world)
    uri = world.layout.manifest("m1")
    world.store.delete([uri])
    if replaced:
        world.store.put(uri, b"something else")
    publisher(world).roll_forward(accepted, commit)
    assert accepted.manifest is not None
    assert world.store.read(world.layout.archived_manifest(DAY, "m1")) == accepted.manifest.to_json()
    assert world.waiting() == ([uri] if replaced else [])


def test_another_driver_archives_at_the_same_moment() -> None:
    """An original that another driver moves away between two requests is no error."""
    world = World()
    accepted, commit = decided(world)
    archive = world.layout.archived_manifest(DAY, "m1")

    class OvertakenStore(FaultyStore):
        def copy(self, source: str, target: str) -> None:
            if target == archive:
                world.store.copy(source, target)
                world.store.delete([source])
            super().copy(source, target)

    store = OvertakenStore(world.store)
    Publisher(store, world.layout, world.app(store=store).ledger).roll_forward(accepted, commit)
    assert world.store.stat(archive) is not None
    world.check_exact()


def test_archive_keeps_the_bytes() -> None:
    """The archived manifest is the delivered object, byte for byte."""
    world = World()
    data = b" " + world.manifest("m1", [world.file("a", GOOD)]).to_json() + b"\n"
    world.put_manifest("m1.json", data)
    world.run_once()
    assert world.store.read(world.layout.archived_manifest(DAY, "m1")) == data
