"""The listing of sources is kept outside of memory, as it was given."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compactor.adapters.local.sqlite import listed_files
from compactor.adapters.local.sqlite.listed_files import SqliteListedFiles
from compactor.adapters.memory.store import MemoryClaims
from compactor.core.ports import Claim, ObjectInfo
from compactor.manifests.sources.listed_files import ListedInfo
from tests.support.harness import Harness
from tests.support.sources import source_planner

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def listed(uri: str, number: int = 0, **changes: object) -> ListedInfo:
    known = {"size_bytes": number, "etag": f"e-{number}", "modified_at": MOMENT - timedelta(days=30_000 * number)}
    return ListedInfo(ObjectInfo(uri, **{**known, **changes}), "2026-01-02", "name")  # type: ignore[arg-type]


def test_files_come_back_in_order_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page; one that was listed twice has its first place, and what was listed last."""
    monkeypatch.setattr(listed_files, "PAGE_FILES", 3)
    files = [listed(f"/raw/ü {number} '\".ndjson", number, stamp=f"s-{number}") for number in (5, 1, 0, 2, 4, 3, 6)]
    found = SqliteListedFiles()
    found.add(files)
    again = listed("file:///raw/ü 1 '\".ndjson", 9)
    found.add([again])
    files[1] = again
    pages = list(found.pages())
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [each for page in pages for each in page] == files
    assert found.get("/raw/ü 1 '\".ndjson") == again.info
    assert found.get("/raw/none") is None
    found.close()


@pytest.mark.parametrize("files", [0, 1])
def test_few_files(files: int) -> None:
    """None are no page."""
    found = SqliteListedFiles()
    found.add(listed("/a") for _ in range(files))
    assert len(list(found.pages())) == files


def test_memory_does_not_grow_with_files_that_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with nothing new lists four times as many files in as much memory."""
    monkeypatch.setattr(listed_files, "PAGE_FILES", 250)
    assert _peak_bytes(4_000) < 1.3 * _peak_bytes(1_000)


class EverythingClaimed(MemoryClaims):
    """Every file is in a manifest."""

    def get_many(self, keys: Sequence[str]) -> dict[str, Claim]:
        return dict.fromkeys(keys, Claim("m", MOMENT))


def _peak_bytes(files: int) -> int:
    harness = Harness()
    harness.claims = EverythingClaimed()
    planner = source_planner(harness)
    planner.planner.claimer._settled_fates["m"] = "exists"
    planner = replace(planner, listing=lambda _: (listed(f"/w/raw/{each:06d}", 1).info for each in range(files)))
    tracemalloc.start()
    assert planner.plan().planned_before == files
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
