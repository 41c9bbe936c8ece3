"""A scratch disk that a manifest fills: it is tried alone, and only then is the full disk held against it."""

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import AttemptFailure
from compactor.core.errors import CompactorError, ScratchFull
from compactor.core.layout import ManifestKey
from compactor.engines.engine import Staged, StageRequest
from tests.support.fakes import PlainEngine
from tests.support.harness import DAY, GOOD, Harness


class SmallDisk(PlainEngine):
    """One manifest fills the disk each time; so do some attempts beside it."""

    beside = 0
    is_full_for_all = False

    def stage(self, request: StageRequest) -> Staged:
        name = request.manifest.manifest_id
        is_beside = name.startswith("good") and self.beside > 0
        if self.is_full_for_all or name == "big" or is_beside:
            self.beside -= is_beside
            raise ScratchFull("No space left on device")
        return super().stage(request)


def is_passing(failure: AttemptFailure) -> bool:
    """Whether a failure is held against nothing, whatever comes after it."""
    return failure.passing and not failure.undecided


def test_a_manifest_that_fills_the_disk_alone_is_to_blame() -> None:
    """Its attempts beside others count against no manifest; others get through between those that it makes alone."""
    harness = Harness(stream={"manifests_in_flight": 3})
    engine = SmallDisk(harness.store)
    engine.beside = 2
    harness.deliver("big", GOOD)
    for number in range(8):
        harness.deliver(f"good{number}", GOOD)
        try:
            harness.run_once(engine=engine)
        except CompactorError:
            harness.clock.advance(600)
    key = ManifestKey(DAY, "big")
    attempts = harness.ledger.attempts(key, harness.ledger.record_names(key)).unfolded
    found = {(each.attempt.alone, is_passing(each.failure)) for each in attempts if each.failure}
    assert harness.dead_letter("big").reason == "retries_exhausted"
    assert "ScratchFull: No space left on device" in harness.dead_letter("big").message
    assert found == {(False, True), (True, False)}
    assert all(isinstance(harness.outcome(f"good{number}"), Commit) for number in range(8))


def test_a_disk_that_is_full_for_all_is_held_against_none() -> None:
    """Where no manifest gets through, alone or not, the machine is to blame."""
    harness = Harness(stream={"manifests_in_flight": 3})
    for number in range(4):
        harness.deliver(f"good{number}", GOOD)
    engine = SmallDisk(harness.store)
    engine.is_full_for_all = True
    for _ in range(8):
        try:
            harness.run_once(engine=engine)
        except CompactorError:
            harness.clock.advance(600)
    engine.is_full_for_all = False
    assert harness.run_once(engine=engine).committed == 4
