"""The figures of building and sealing."""

from collections import Counter
from datetime import UTC, datetime

from compactor.core.documents.manifest import Manifest
from compactor.manifests.building.builder import BuildReport
from compactor.manifests.building.reports import build_metrics, seal_metrics
from compactor.manifests.building.sealer import SealReport

MANIFEST = Manifest(manifest_id="m", date="2026-01-02", created_at=datetime(2026, 1, 2, tzinfo=UTC), files=())


def test_figures_of_building() -> None:
    """Each figure is that of its own field; skipped objects are added up over all reasons."""
    report = BuildReport(
        messages=9,
        announced=2,
        announced_bytes=3,
        skipped=Counter(empty=4, bad_name=1),
        repeated=6,
        misdated=9,
        manifests=[MANIFEST] * 7,
        parts=[MANIFEST] * 10,
        failed=dict.fromkeys("abcdefgh", "why"),
    )
    assert build_metrics(report) == {
        "FilesAnnounced": 2,
        "BytesAnnounced": 3,
        "FilesSkipped": 5,
        "FilesRepeated": 6,
        "FilesMisdated": 9,
        "ManifestsBuilt": 7,
        "MessagesFailed": 8,
    }


def test_figures_of_sealing() -> None:
    """Each figure is that of its own field."""
    report = SealReport([MANIFEST] * 2, sealed_parts=9, waiting_parts=3, oldest_seconds=4.5, unreadable={"u": "why"})
    assert seal_metrics(report) == {
        "ManifestsBuilt": 2,
        "PartsPending": 3,
        "OldestPartAgeSeconds": 4.5,
        "PartsUnreadable": 1,
    }
