"""Files sorted by date outside of memory: what a list would give, and nothing left on the disk."""

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.adapters.local.sqlite.spilled_files import SqliteSpill
from compactor.core.errors import ScratchFull
from compactor.sources.file_search import Naming
from compactor.sources.spill import SpilledFile

FILES = st.lists(
    st.builds(
        SpilledFile,
        date=st.sampled_from(["2025-12-30", "2025-12-31", "2026-01-01"]),
        uri=st.one_of(st.sampled_from(["s3://b/a", "s3://b/ü \n"]), st.text(max_size=5).map("s3://b/".__add__)),
        size_bytes=st.integers(0, 2**62),
        etag=st.text("0123456789abcdef-", min_size=1, max_size=4),
        modified_us=st.integers(0, 5),
        rule=st.just("name"),
    ),
    max_size=12,
)


def file(uri: str, date: str = "2026-01-01", modified_us: int = 0) -> SpilledFile:
    return SpilledFile(date, uri, 1, "e", modified_us, "name")


@settings(max_examples=30)
@given(rounds=st.lists(FILES, min_size=1, max_size=3), page=st.integers(1, 4))
def test_as_a_list_would(rounds: list[list[SpilledFile]], page: int) -> None:
    """Each round has the last written file at each URI once, by date and URI, in pages; then come other files."""
    spill = SqliteSpill()
    for files in rounds:
        spill.add(files)
        dropped = spill.sort()
        last: dict[str, SpilledFile] = {}
        for each in sorted(files):
            if each.uri not in last or each.modified_us > last[each.uri].modified_us:
                last[each.uri] = each
        pages = {date: list(spill.pages(page, date)) for date, _, _ in spill.dates()}
        found = [each for date in pages for some in pages[date] for each in some]
        assert dropped == len(files) - len(last)
        assert [(each.date, each.uri, each.modified_us) for each in found] == sorted(
            (each.date, each.uri, each.modified_us) for each in last.values()
        )
        assert all(len(some) <= page for of_date in pages.values() for some in of_date)
        totals = [(date, len(of), sum(each.size_bytes for each in of)) for date in pages if (of := _of(found, date))]
        assert spill.dates() == totals
        assert all(uri in spill for uri in last)
        assert "s3://b/none of them" not in spill
    spill.close()


def _of(files: list[SpilledFile], date: str) -> list[SpilledFile]:
    return [each for each in files if each.date == date]


@settings(max_examples=20)
@given(files=FILES, page=st.integers(1, 4))
def test_all_pages(files: list[SpilledFile], page: int) -> None:
    """Without a date, the pages have the files of all dates; each is found by its URI, as it was added."""
    spill = SqliteSpill()
    spill.add(each._replace(stamp="stamp") for each in files)
    spill.sort()
    found = [each for some in spill.pages(page) for each in some]
    assert found == [each for date, _, _ in spill.dates() for some in spill.pages(page, date) for each in some]
    assert [spill.get(each.uri) for each in found] == found
    assert {*found} <= {each._replace(stamp="stamp") for each in files}
    assert spill.get("s3://b/none of them") is None
    spill.close()


def test_namings() -> None:
    """What was noted of a file comes back, however often, and also after the next sorting."""
    spill = SqliteSpill()
    assert list(spill.noted(["s3://b/a"])) == []
    one, other = Naming("m-1", "s3://b/a", None, "waiting"), Naming("m-2", "s3://b/a", "e", "compacted")
    spill.note([one, other])
    spill.sort()
    assert list(spill.noted(["s3://b/b", "s3://b/a"])) == [one, other]


def test_nothing_is_left() -> None:
    """Its file has no name, so that it is gone with the process, also with one that was killed."""
    spill = SqliteSpill()
    spill._database._rows.execute("PRAGMA cache_size = 10")
    spill.add(file(f"s3://b/{'k' * 900}-{number}") for number in range(1000))
    spill.sort()
    [opened] = [each for each in map(_opened, Path("/proc/self/fd").iterdir()) if "etilqs_" in each]
    assert opened.endswith(" (deleted)")
    spill.close()


def _opened(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def test_a_full_disk() -> None:
    """A full disk is named, with where the space is needed."""
    spill = SqliteSpill()
    spill._database._rows.execute("PRAGMA max_page_count = 40")
    with pytest.raises(ScratchFull, match="expected about 1 kB per file there, or set TMPDIR to a different one"):
        spill.add(file(f"s3://b/{number:0200}") for number in range(2000))


def test_several_threads() -> None:
    """Threads may ask while another one notes."""
    spill, troubles = SqliteSpill(), []
    spill.add(file(f"s3://b/{number}") for number in range(100))
    spill.sort()

    def ask() -> None:
        troubles.extend(number for number in range(100) if f"s3://b/{number}" not in spill)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(100):
        spill.note([Naming("m", f"s3://b/{number}", None, "waiting")])
    for thread in threads:
        thread.join()
    assert (troubles, len(list(spill.noted([f"s3://b/{number}" for number in range(100)])))) == ([], 100)
