"""What a plan of sources keeps of their listing is not in memory."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from compactor.core.ports import Claim, ObjectInfo
from tests.support.folders import folder_planner
from tests.support.harness import Harness
from tests.support.memory_store import MemoryClaims

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_memory_does_not_grow_with_files_that_are_planned() -> None:
    """A call with nothing new lists four times as many files in as much memory."""
    assert _peak_bytes(8_000) < 1.3 * _peak_bytes(2_000)


class EverythingClaimed(MemoryClaims):
    """Every file is in a manifest."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        return dict.fromkeys(keys, Claim("m", MOMENT))


def _peak_bytes(files: int) -> int:
    harness = Harness()
    harness.claims = EverythingClaimed()
    planner = folder_planner(harness)
    planner.planner.claimer._settled_states["m"] = "exists"
    planner = replace(
        planner,
        planner=replace(planner.planner, page_files=250),
        listing=lambda _: (ObjectInfo(f"/w/raw/{each:06d}", 1, "e", MOMENT) for each in range(files)),
    )
    tracemalloc.start()
    assert planner.plan().planned_before == files
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
