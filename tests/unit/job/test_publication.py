"""Publishing a decided manifest: any driver may repeat every step, and other manifests are left alone."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import Accepted
from compactor.core.errors import StagingLost
from compactor.core.layout import ManifestKey
from compactor.job.publication import Publisher
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, Harness

M1 = ManifestKey(DAY, "m1")


def decided(harness: Harness) -> tuple[Accepted, Commit]:
    """A manifest whose driver died when it was decided."""

    def die(step: CrashPoint, _manifest_id: str) -> None:
        if step == CrashPoint.DECIDED:
            raise DiedError

    uri = harness.deliver("m1", GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([uri])
    accepted = harness.ledger.accepted("m1")
    assert accepted is not None
    return accepted, harness.commit("m1")


def publisher(harness: Harness) -> Publisher:
    app = harness.app()
    return Publisher(app.state)


def test_again_and_again() -> None:
    """Rolling forward once more, also long after done, changes nothing."""
    harness = Harness()
    accepted, commit = decided(harness)
    publisher(harness).roll_forward(accepted, commit)
    before = {info.uri: harness.store.read(info.uri) for info in harness.store.list("/w/")}
    publisher(harness).roll_forward(accepted, commit)
    assert {info.uri: harness.store.read(info.uri) for info in harness.store.list("/w/")} == before
    harness.check_exact()


def test_staging_lost_before_done() -> None:
    """If staging is gone although no driver recorded done, the manifest is not done."""
    harness = Harness()
    accepted, commit = decided(harness)
    harness.store.delete([commit.outputs[0].staged])
    with pytest.raises(StagingLost, match=r"m1.*found nothing at .*expected \d+ bytes"):
        publisher(harness).roll_forward(accepted, commit)
    assert not harness.ledger.is_done(M1)
    assert harness.waiting() == [harness.layout.manifest("m1")]


def test_staging_lost_after_publishing() -> None:
    """A file that is in its final place, as long as the commit says, needs its staging no more."""
    harness = Harness()
    accepted, commit = decided(harness)
    harness.store.copy(commit.outputs[0].staged, commit.outputs[0].final)
    harness.store.delete([commit.outputs[0].staged])
    publisher(harness).roll_forward(accepted, commit)
    assert harness.ledger.is_done(M1)
    harness.check_exact()


def test_output_removed_after_done() -> None:
    """A driver that is late publishes nothing again, also where the owner of the output has removed it since."""
    harness = Harness()
    accepted, commit = decided(harness)
    publisher(harness).roll_forward(accepted, commit)
    harness.store.delete([file.final for file in commit.outputs])
    publisher(harness).roll_forward(accepted, commit)
    assert harness.output_rows() == {}


@pytest.mark.parametrize("replaced", [False, True])
def test_original_taken_away_meanwhile(replaced: bool) -> None:
    """A manifest that was removed or replaced after its acceptance is archived as accepted; its successor stays."""
    harness = Harness()
    accepted, commit = decided(harness)
    uri = harness.layout.manifest("m1")
    harness.store.delete([uri])
    if replaced:
        harness.store.put(uri, b"something else")
    publisher(harness).roll_forward(accepted, commit)
    assert accepted.manifest is not None
    assert harness.store.read(harness.layout.archived_manifest(M1)) == accepted.manifest.to_json()
    assert harness.waiting() == ([uri] if replaced else [])


def test_another_driver_archives_at_the_same_moment() -> None:
    """An original that another driver moves away between two requests is no error."""
    harness = Harness()
    accepted, commit = decided(harness)
    archive = harness.layout.archived_manifest(M1)

    class OvertakenStore(FaultyStore):
        def copy(self, source: str, target: str) -> None:
            if target == archive:
                harness.store.copy(source, target)
                harness.store.delete([source])
            super().copy(source, target)

    store = OvertakenStore(harness.store)
    Publisher(harness.app(store=store).state).roll_forward(accepted, commit)
    assert harness.store.stat(archive) is not None
    harness.check_exact()


def test_archive_keeps_the_bytes() -> None:
    """The archived manifest is the delivered object, byte for byte."""
    harness = Harness()
    data = b" " + harness.manifest("m1", [harness.file("a", GOOD)]).to_json() + b"\n"
    harness.put_manifest("m1.json", data)
    harness.run_once()
    assert harness.store.read(harness.layout.archived_manifest(M1)) == data
