"""Manifests of ranges that no plan has written: their offsets would be lost for others, or doubled."""

from typing import Any

import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile, version_keys
from compactor.core.kafka.ranges import KafkaRange
from compactor.job.steps.intake import Delivery, Intake
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


def test_a_planned_manifest_and_its_redrives(made: Scene) -> None:
    """A redrive may have any part of what its root has."""
    [manifest] = made.manifests()
    assert reason(made, manifest) == ""
    assert reason(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1")) == ""


def test_ranges_of_others(made: Scene) -> None:
    """Those of another manifest, of another topic id, and further or fewer offsets than the link has."""
    [manifest] = made.manifests()
    assert reason(made, with_range(manifest, 0, 9, manifest_id="other")) == "not_planned"
    assert reason(made, with_range(manifest, 9, 12, manifest_id="further")) == "not_planned"
    assert reason(made, with_range(manifest, 0, 8)) == "not_planned"
    assert reason(made, with_range(manifest, 0, 9, etag="two")) == "not_planned"


def test_redrives_of_others(made: Scene) -> None:
    """Of a root that has other ranges, and of none."""
    [manifest] = made.manifests()
    assert reason(made, manifest) == ""
    redrive = {"manifest_id": f"{manifest.manifest_id}-r1"}
    assert reason(made, with_range(manifest, 3, 10, **redrive)) == "not_planned"
    assert reason(made, with_range(manifest, 3, 9, etag="two", **redrive)) == "not_planned"
    assert reason(made, with_range(manifest, 3, 9, manifest_id="none-r1")) == "not_planned"
