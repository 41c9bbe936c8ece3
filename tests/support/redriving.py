"""What is set aside in tests of redriving, how it is put back, and whether every line is there once."""

from collections import Counter
from collections.abc import Callable

import pytest

from compactor.core.crash_points import OnRedriveStep, ignore_redrive_step
from compactor.core.manifest import ManifestFile
from compactor.core.records import Commit, FileStatus
from compactor.engines.engine import Staged, StageRequest
from compactor.ndjson.lines import Limits
from compactor.ops.redrive.redriver import RedriveReport
from compactor.ops.redrive.selection import Kind, Scope
from tests.support import fakes as twins
from tests.support.harness import DAY, FLAWED, GOOD, World

LEASE_SECONDS = 600.0
LONG = b'{"id": "long", "text": "' + b"x" * 100 + b'"}'
SHORT_LINES = Limits(max_line_bytes=40, max_decompressed_bytes=1 << 30)


class FailingEngine:
    """An engine for which every manifest is too much."""

    name = "failing"

    def is_well(self) -> bool:
        return True

    def stage(self, request: StageRequest) -> Staged:
        raise ValueError(f"{request.manifest.manifest_id} is too much")


def new_world() -> World:
    """A world in which one attempt is enough to set a manifest aside."""
    return World(
        stream={"max_attempts": 1}, builder={"claim_lease_seconds": LEASE_SECONDS, "target_manifest_bytes": 1 << 20}
    )


def redrive(
    world: World,
    kind: Kind,
    *manifest_ids: str,
    reason: str | None = None,
    date: str | None = None,
    dry_run: bool = False,
    with_claims: bool = True,
    on_step: OnRedriveStep = ignore_redrive_step,
) -> RedriveReport:
    """One redrive, in a process of its own."""
    app = world.app()
    if not with_claims:
        app.claims_if_any = None
    survey = app.surveyor.survey(Scope(kind, manifest_ids, reason, date))
    return app.redriver(on_step=on_step).redrive(survey, dry_run=dry_run)


def new_ids(report: RedriveReport) -> list[str | None]:
    return [each.manifest_id for each in report.redriven]


def whys(report: RedriveReport) -> list[str]:
    return [each.why for each in report.refused]


def exhaust(world: World) -> None:
    """Have every manifest that waits become a dead letter."""
    for _ in range(3):  # together, then each alone, and then it is seen that it was tried often enough
        world.runner(engine=FailingEngine()).run(world.waiting())
    assert world.waiting() == []


def plan(world: World) -> int:
    """Plan all input; how many files were not planned before."""
    return sum(len(manifest.files) for manifest in world.app().planner.plan("/w/raw").manifests)


def rows_of(world: World) -> Counter[str]:
    """How often each input was compacted."""
    outcomes = [world.ledger.outcome(*each) for each in world.ledger.manifests()]
    return Counter(
        file.uri
        for outcome in outcomes
        if isinstance(outcome, Commit)
        for file in outcome.files
        if file.status is FileStatus.COMPACTED
    )


def redriven_inputs(world: World, manifest_id: str) -> list[ManifestFile]:
    """All files of redriven lines that the trail of a manifest names."""
    trail = world.app().trail
    family = trail.family_of(manifest_id)
    assert family is not None
    return [file for entry in trail.entries(family) for file in entry.redrive.manifest.files]


def dead_letter(world: World) -> str:
    """Two files, planned, whose manifest is a dead letter; its id."""
    for number, content in enumerate((GOOD, FLAWED)):
        world.file(f"{DAY}-{number}.ndjson", content)
    plan(world)
    [manifest_id] = [uri.rsplit("/", 1)[1].removesuffix(".json") for uri in world.waiting()]
    exhaust(world)
    assert world.dead_letter(manifest_id).reason == "retries_exhausted"
    return manifest_id


def set_aside(world: World) -> str:
    """A planned manifest of which one file was missing, and is back since; the manifest's id."""
    for number, content in enumerate((GOOD, FLAWED)):
        world.file(f"{DAY}-{number}.ndjson", content)
    plan(world)
    [manifest_id] = [uri.rsplit("/", 1)[1].removesuffix(".json") for uri in world.waiting()]
    world.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    world.run_once()
    world.file(f"{DAY}-1.ndjson", FLAWED)
    return manifest_id


def rejected(world: World, *contents: bytes) -> str:
    """A planned manifest whose over-long lines were rejected by a limit that is higher since; its id."""
    for number, content in enumerate(contents or (GOOD + LONG + b"\n", LONG)):
        world.file(f"{DAY}-{number}.ndjson", content)
    plan(world)
    [manifest_id] = [uri.rsplit("/", 1)[1].removesuffix(".json") for uri in world.waiting()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twins, "LIMITS", SHORT_LINES)
        world.run_once()
    assert world.rejects()
    return manifest_id


CASES: dict[Kind, Callable[[World], str]] = {"manifests": dead_letter, "files": set_aside, "rejects": rejected}
each_kind = pytest.mark.parametrize("kind", CASES)


def check(world: World, kind: Kind) -> None:
    """Every line of all inputs is there once."""
    if kind != "rejects":
        world.check_exact()
        assert set(rows_of(world).values()) == {1}
        return
    rows: Counter[bytes] = Counter()
    for info in world.store.list("/w/raw/"):
        rows.update(line for line in world.store.read(info.uri).split(b"\n") if line)
    found = Counter(row["id"] for info in world.store.list("/w/output/") for row in world.table(info.uri))
    assert found == {"1": 1, "2": 1, "long": 2}
    assert rows.total() == found.total()
    # What was read of the sources stays as it is; nothing that was redriven was rejected again.
    assert {uri for uri, _, _ in world.rejects()} == {f"/w/raw/{DAY}-0.ndjson", f"/w/raw/{DAY}-1.ndjson"}
    assert world.waiting() == []
