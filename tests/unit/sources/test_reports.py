"""The figures of building and sealing."""

from collections import Counter

from compactor.sources.events.builder import Built
from compactor.sources.events.sealer import SealedParts
from compactor.sources.plan import Plan, PlannedManifest

MANIFEST = PlannedManifest("m", "2026-01-02", 0, 0)


def test_figures_of_building() -> None:
    """Each figure is that of its own field; skipped objects are added up over all reasons."""
    plan = Plan(
        candidates=2,
        candidate_bytes=3,
        skipped=Counter(empty=4, bad_name=1),
        planned_before=6,
        misdated=9,
        manifests=[MANIFEST] * 7,
        parts=[MANIFEST] * 10,
    )
    figures = {
        "FilesAnnounced": 2,
        "BytesAnnounced": 3,
        "FilesSkipped": 5,
        "FilesRepeated": 6,
        "FilesMisdated": 9,
        "ManifestsBuilt": 7,
        "MessagesFailed": 8,
    }
    alone = Built(messages=9, skipped=Counter(test_event=2), plans={"": plan}, failed_by=Counter({"": 8}))
    assert alone.figures == {"": {**figures, "FilesSkipped": 7}}
    failed_by = Counter({"orders": 8, "": 1})
    routed = Built(messages=9, skipped=Counter(empty=3), plans={"orders": plan}, failed_by=failed_by)
    assert routed.figures == {"orders": figures, "": {"FilesSkipped": 3, "MessagesFailed": 1}}


def test_figures_of_sealing() -> None:
    """Each figure is that of its own field."""
    report = SealedParts(
        manifests=[MANIFEST] * 2, sealed_parts=9, waiting_parts=3, oldest_seconds=4.5, unreadable={"u": "why"}
    )
    assert report.figures == {
        "ManifestsBuilt": 2,
        "PartsPending": 3,
        "OldestPartAgeSeconds": 4.5,
        "PartsUnreadable": 1,
    }
