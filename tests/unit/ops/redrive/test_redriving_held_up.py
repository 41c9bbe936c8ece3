"""A redrive that is held up between the choice of its number and its claims, while others go on."""

import pytest

from compactor.core.crash_points import RedriveCrashPoint
from compactor.core.documents.manifest import ManifestFile
from compactor.ops.redrive.planner import Draft, RedrivePlanner
from compactor.sources.claiming import claim_key
from compactor.wiring import planning
from tests.support.harness import DAY, GOOD, DiedError
from tests.support.redriving import exhaust, new_harness, new_ids, plan, redrive


def test_a_late_redrive_leaves_the_files_of_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner revokes the first redrive, and the second one is compacted. The first goes on, and claims nothing.

    Else the second announcement of a file would find a holder whose id is revoked, and the file would be compacted
    twice.
    """
    harness = new_harness()
    file = harness.file(f"{DAY}.ndjson", GOOD)
    plan(harness)
    source = harness.waiting()[0].rsplit("/", 1)[1].removesuffix(".json")
    exhaust(harness)
    claim, reports = RedrivePlanner.claim, []

    def die(point: RedriveCrashPoint, _manifest_id: str) -> None:
        if point is RedriveCrashPoint.CLAIMED:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(harness, "manifests", on_crash_point=die)

    def held_up(self: RedrivePlanner, draft: Draft, files: list[ManifestFile], manifest_id: str) -> list[ManifestFile]:
        if manifest_id == f"{source}-r1" and not reports:
            planning.claimer(harness.app()).revoke(manifest_id)
            reports.append(None)
            reports[0] = redrive(harness, "manifests")
            harness.run_once()
        return claim(self, draft, files, manifest_id)

    monkeypatch.setattr(RedrivePlanner, "claim", held_up)
    late = redrive(harness, "manifests")
    assert new_ids(reports[0]) == [f"{source}-r2"]
    claimed = planning.claimer(harness.app()).claim([claim_key(file)], "of a builder that is told again")
    assert (claimed.won, claimed.taken) == (set(), {claim_key(file)})
    assert new_ids(late) == []
    harness.check_exact()
