"""Dividing and grouping: nothing is lost, nothing is doubled, the order stays."""

import itertools
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.manifest import ManifestFile
from compactor.core.rules.packing import spread
from compactor.sources.packing import cut, one_entry_each, weight

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)
ITEMS = st.lists(st.integers(0, 1000), max_size=60)


@given(items=ITEMS, takers=st.integers(1, 20))
def test_spread(items: list[int], takers: int) -> None:
    """Every item is in exactly one share, shares keep the order, and no share is empty or far too heavy."""
    numbered = list(enumerate(items))
    shares = spread(numbered, takers, lambda item: item[1])
    assert sorted(item for share in shares for item in share) == numbered
    assert all(share == sorted(share) and share for share in shares)
    assert len(shares) == min(takers, len(items))
    if shares:
        loads = [sum(max(1, weight) for _, weight in share) for share in shares]
        assert max(loads) <= sum(loads) / len(shares) + max(*items, 1)


@given(items=ITEMS, target=st.integers(1, 500))
def test_cut(items: list[int], target: int) -> None:
    """The runs and the rest are the items in their order; each run ends where it is closest to the target."""
    runs, rest = cut(items, target, lambda item: item)
    assert [item for run in [*runs, rest] for item in run] == items
    assert all(runs)
    assert sum(rest) < target
    for run, following in itertools.pairwise([*runs, rest] if rest else runs):
        total = sum(run)
        with_next, without_last = total + following[0], total - run[-1]
        assert following[0] >= target or abs(total - target) <= abs(with_next - target)
        assert len(run) == 1 or abs(total - target) <= abs(without_last - target)
        assert len(run) == 1 or max(run) < target


def test_cut_by_example() -> None:
    """A run is closed by the item that brings it closest; what is as heavy as the target stands alone."""
    assert cut([4, 4, 4, 50, 1, 9], 10, lambda item: item) == ([[4, 4, 4], [50], [1, 9]], [])
    assert cut([5, 4, 9], 10, lambda item: item) == ([[5, 4]], [9])
    assert cut([50, 1], 10, lambda item: item) == ([[50]], [1])
    assert cut([1, 12, 1], 10, lambda item: item) == ([[1], [12]], [1])


@given(named=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["1", "2", "3"]), st.booleans())))
def test_one_entry_each(named: list[tuple[str, str, bool]]) -> None:
    """Each object has one entry, with all of its versions, in whatever steps the entries are joined."""
    files = [
        ManifestFile(uri=f"s3://b/{name}", etag=etag, event_time=MOMENT if is_late else None)
        for name, etag, is_late in named
    ]
    half = len(files) // 2
    joined = one_entry_each([*one_entry_each(files[:half]), *one_entry_each(files[half:])])
    assert [file.uri for file in joined] == list(dict.fromkeys(file.uri for file in files))
    versions = [(each.uri, each.etag) for file in joined for each in file.versions]
    assert sorted(versions) == sorted({(file.uri, file.etag) for file in files})
    late = {file.uri for file in files if file.event_time}
    assert {file.uri for file in joined if file.event_time} <= late


def test_many_versions_weigh() -> None:
    """A manifest has room for many versions of an object, and not for any number."""
    many = tuple(f"{number:032x}" for number in range(50_000))
    few, full = (ManifestFile(uri="s3://b/a", etag="e", size_bytes=1, other_etags=each) for each in (many[:9], many))
    assert weight([few], 1e9) < 1e6
    assert weight([full], 1e9) > 50_000_000
