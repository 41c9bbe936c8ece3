"""What each release left of a folder stays readable, stays exact when work goes on, and keeps its JSON documents."""

import json
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from compactor import __version__
from tests.support import extras
from tests.support.releases import (
    IDS,
    QUESTIONS,
    RAW,
    RELEASES,
    ROWS,
    call,
    document,
    inside,
    restored,
    shape_and_maps,
    shapes,
    store_release,
    write,
)
from tests.support.stored import UPDATE

pytestmark = extras.NATIVE.needed

if os.environ.get(UPDATE) == "1":
    store_release(RELEASES / __version__)

STORED = sorted(RELEASES.iterdir())
CHANGING = ("status", "report", "compact")
"""What these say depends on when they are asked, and how long that takes."""


@pytest.fixture(params=STORED, ids=lambda path: path.name)
def release(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def folder(release: Path, tmp_path: Path) -> Path:
    """A copy of what a release left."""
    restored(release, tmp_path / "copy")
    return tmp_path / "copy"


def ids() -> Counter[int]:
    return Counter(ds.dataset("rows", format="parquet").to_table().column("id").to_pylist())


def lost(before: Any, now: Any, maps: Collection[str], path: str = "", *, values: bool) -> list[str]:
    """What a document said and another one does not.

    Args:
        before: The document of an earlier release.
        now: That of this one, which may say more.
        maps: The paths of objects whose keys are data.
        path: Of both in the whole document.
        values: Whether values have to be the same, except text for people; else only keys.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        gone = [f"{path}.{key} is gone" for key in before.keys() - now.keys() if values or path not in maps]
        inner = [(before[key], now[key], f"{path}.{key}".lstrip(".")) for key in before.keys() & now.keys()]
    elif isinstance(before, list) and isinstance(now, list):
        gone = [f"{path}: {len(now)} elements instead of {len(before)}"] if values and len(before) != len(now) else []
        inner = [(one, other, f"{path}[]") for one, other in zip(before, now, strict=False)]
    else:
        is_prose = isinstance(before, str) and " " in before and isinstance(now, str)
        return [f"{path}: {now!r} instead of {before!r}"] if values and not is_prose and before != now else []
    return [*gone, *(each for pair in inner for each in lost(pair[0], pair[1], maps, pair[2], values=values))]


def test_the_state_reads_as_before(release: Path, folder: Path) -> None:
    """Every command that asks says what it said, under every key that it had, and ends with the same code."""
    stored = json.loads((release / "documents.json").read_text())
    assert stored.keys() <= QUESTIONS.keys()
    with inside(folder):
        for name, before in stored.items():
            code, found = document(*QUESTIONS[name])
            maps = shape_and_maps(name.split()[0])[1]
            assert (name, lost(before["document"], found, maps, values=name not in CHANGING)) == (name, [])
            assert (name, code) == (name, before["code"])
        assert ids() == Counter(IDS)


def test_work_goes_on(folder: Path) -> None:
    """New files are taken, and new lines of one that grew; known ones are not, a file without its lines is named."""
    with inside(folder):
        write("2025-12-03-new.ndjson", b'{"id": 10, "price": 1.5}\n{"id": 11}\n')
        known = Path("raw/2025-12-01-a.ndjson").read_bytes()
        write("2025-12-01-a.ndjson", known + b'{"id": 12}\n')
        found = document("compact", RAW, ROWS)[1]
        assert (found["new_files"], found["grown"], found["left_out"]) == (2, 1, [])
        assert ids() == Counter([*IDS, 10, 11, 12])
        write("2025-12-01-a.ndjson", known)
        assert call("compact", RAW, ROWS).exit_code == 3
        assert ids() == Counter([*IDS, 10, 11, 12])
        assert document("verify", "--deep", ROWS)[1]["discrepancies"] == []


def test_lost_rows_are_made_again(folder: Path) -> None:
    """From the records that the release wrote."""
    with inside(folder):
        for path in Path("rows").rglob("*.parquet"):
            path.unlink()
        assert document("verify", ROWS)[1]["discrepancies"] != []
        assert call("rebuild", ROWS).exit_code == 0
        assert ids() == Counter(IDS)
        assert document("verify", "--deep", ROWS)[1]["discrepancies"] == []


def test_lost_rows_of_a_file_with_other_bytes_are_not_made_again(folder: Path) -> None:
    """Its length and its time are the same, so only the digest that the release wrote tells."""
    with inside(folder):
        path = Path("raw/2025-12-01-a.ndjson")
        content, written_ns = path.read_bytes(), path.stat().st_mtime_ns
        path.write_bytes(content.replace(b"1", b"2"))
        os.utime(path, ns=(written_ns, written_ns))
        for rows in Path("rows").rglob("*.parquet"):
            rows.unlink()
        result = call("rebuild", ROWS)
        assert (result.exit_code, "it is read otherwise than by the first commit, with digest" in result.output) == (
            3,
            True,
        )


def test_documents_keep_their_keys(release: Path) -> None:
    """No key of any command is gone, and none has another type."""
    now = shapes()
    stored: dict[str, dict[str, str]] = json.loads((release / "shapes.json").read_text())
    changed = {
        f"{name}: {path}": (kind, now.get(name, {}).get(path))
        for name, shape in stored.items()
        for path, kind in shape.items()
        if now.get(name, {}).get(path) != kind
    }
    assert changed == {}


def test_this_release_is_stored() -> None:
    """Tests of later ones begin with what it leaves."""
    assert RELEASES / __version__ in STORED, f"run this test with {UPDATE}=1"


def test_what_is_stored_is_small_and_of_no_machine() -> None:
    """No file is large, and none names a folder of the machine that stored it."""
    for path in filter(Path.is_file, RELEASES.rglob("*")):
        content = path.read_bytes()
        assert len(content) < 100_000
        assert not any(place in content for place in (b"/home/", b"/tmp/", b"/root/", b"/work/")), path
