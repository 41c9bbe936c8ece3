"""Manifests of ranges that no plan has written: their offsets would be lost for others, or doubled."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile, version_keys
from compactor.core.documents.records import Redrive
from compactor.core.kafka.ranges import KafkaRange
from compactor.core.layout import root_id
from compactor.job.steps import intake
from compactor.job.steps.intake import Delivery, Intake
from compactor.ops.redrive.redrive_log import RedriveLog
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app
from tests.unit.manifests.test_kafka_planning import LAYOUT, TOPIC, Scene, scene


def delivered(made: Scene, manifest: Manifest) -> Delivery:
    uri = LAYOUT.manifest(manifest.manifest_id)
    made.store.put(uri, manifest.to_json())
    found = Intake(state=made.planner().state, allowed_prefixes=["kafka://main"]).receive(uri)
    assert found is not None
    return found


def reason(made: Scene, manifest: Manifest) -> str:
    """Why a manifest is refused; empty if it is accepted."""
    refusal = delivered(made, manifest).refusal
    return refusal.reason if refusal is not None else ""


def with_range(manifest: Manifest, first: int, end: int, **changed: Any) -> Manifest:
    files = (ManifestFile(uri=str(KafkaRange(TOPIC, 0, first, end)), size_bytes=1, etag=changed.pop("etag", "one")),)
    return manifest.model_copy(update={**version_keys(files), "files": files, **changed})


@pytest.fixture
def made() -> Scene:
    found, _ = scene(9)
    found.plan()
    return found


def on_record(made: Scene, manifest: Manifest, number: int = 1) -> Manifest:
    """Put a redrive on record as `compactor redrive` does; returns its manifest."""
    state, root = made.planner().state, root_id(manifest.manifest_id)
    accepted = state.ledger.accepted(root)
    assert accepted is not None
    redrive = Redrive(
        kind="files", source=root, number=number, counts={}, manifest=manifest, run_id="r", redriven_at=made.clock.now()
    )
    assert RedriveLog(state=state).record(accepted.key, redrive)
    return manifest


def test_a_planned_manifest_and_its_redrives(made: Scene) -> None:
    """A redrive may have any part of what its root has, also if it redrives another redrive."""
    [manifest] = made.manifests()
    assert reason(made, manifest) == ""
    assert reason(made, on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1"))) == ""
    further = with_range(manifest, 4, 9, manifest_id=f"{manifest.manifest_id}-r2")
    assert reason(made, on_record(made, further, 2)) == ""


def test_ranges_of_others(made: Scene) -> None:
    """Those of another manifest, of another topic id, and further or fewer offsets than the link has."""
    [manifest] = made.manifests()
    assert reason(made, with_range(manifest, 0, 9, manifest_id="other")) == "not_planned"
    assert reason(made, with_range(manifest, 9, 12, manifest_id="further")) == "not_planned"
    assert reason(made, with_range(manifest, 0, 8)) == "not_planned"
    assert reason(made, with_range(manifest, 0, 9, etag="two")) == "not_planned"


def test_redrives_that_are_not_on_record(made: Scene) -> None:
    """Nor one that has other files than its record, or the number of another one."""
    [manifest] = made.manifests()
    assert reason(made, manifest) == ""
    redrive = with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1")
    assert reason(made, redrive) == "not_planned"
    assert reason(made, redrive.model_copy(update={"manifest_id": "none-r1"})) == "not_planned"
    on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r2"), 2)
    assert reason(made, with_range(manifest, 4, 9, manifest_id=f"{manifest.manifest_id}-r2")) == "not_planned"
    on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r4"), 3)
    assert reason(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r3")) == "not_planned"


def test_redrives_of_others(made: Scene) -> None:
    """Of a root that has other ranges, of none, and of ranges that overlap, on record or not."""
    [manifest] = made.manifests()
    assert reason(made, manifest) == ""
    redrive = partial(with_range, manifest)
    root = manifest.manifest_id
    assert reason(made, on_record(made, redrive(3, 10, manifest_id=f"{root}-r1"), 1)) == "not_planned"
    assert reason(made, on_record(made, redrive(3, 9, etag="two", manifest_id=f"{root}-r2"), 2)) == "not_planned"
    both = redrive(3, 9, manifest_id=f"{root}-r3")
    both = both.model_copy(update={"files": (*both.files, *redrive(4, 5).files)})
    assert reason(made, on_record(made, both, 3)) == "not_planned"


def test_rows_of_offsets_that_are_there_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` names them, of two manifests and within one."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    app = kafka_app(tmp_path, log)
    [planned] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    manifest = Manifest.model_validate_json(app.store.read(app.layout.manifest(planned.manifest_id)))
    app.threaded_job(1).run(once=True)
    assert app.verifier().verify_all().discrepancies == []
    monkeypatch.setattr(intake, "check_planned", lambda *_: None)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3, 9)])
    parts = [with_range(manifest, first, end).files[0] for first, end in ((2, 3), (3, 6), (5, 8))]
    forged = manifest.model_copy(update={"manifest_id": "other", "files": tuple(parts)})
    app.store.put(app.layout.manifest("other"), forged.to_json())
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    found = app.verifier().verify_all().discrepancies
    assert {each.expected for each in found} == {"the rows of each offset once"}
    assert [(each.where, each.found) for each in found] == [
        (f"{TOPIC}/0?from=2&to=3", f"offset 2 compacted by manifest {planned.manifest_id} as well"),
        (f"{TOPIC}/0?from=3&to=6", "offset 5 compacted by manifest other as well"),
    ]
