"""The dirty folder is what the page says, and the page has the table of the versions that are pinned."""

import gzip
import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench.side_by_side.__main__ import HEAD
from bench.side_by_side.environment import version
from bench.side_by_side.folder import DAYS, FILES, LINES, DirtyFolder
from bench.side_by_side.tools import tools
from compactor import __version__

PAGE = (Path(__file__).resolve().parents[3] / "bench" / "side-by-side.md").read_text()


def test_the_folder(tmp_path: Path) -> None:
    """Its good lines are those of files that can be read; each later day adds to them."""
    folder = DirtyFolder(tmp_path / "tool")
    counts = []
    for day in DAYS:
        folder.live(day)
        counts.append(len(folder.good))
        with pytest.raises(EOFError) if day == 1 else nullcontext():
            gzip.decompress((folder.raw / "cut.ndjson.gz").read_bytes())
    written = [json.loads(line)["id"] for path in folder.raw.glob("2026-*") for line in path.open("rb")]
    whole = FILES * LINES + 1000
    assert counts == [whole, whole + 1000 + 10 + LINES, whole + 1000 + 10 + LINES]
    assert set(written) <= folder.good
    assert len(written) == len(set(written)) + LINES
    assert len(gzip.decompress((folder.raw / "cut.ndjson.gz").read_bytes()).splitlines()) == 1000


def test_the_page_has_the_table() -> None:
    """Each step of each tool, in its version, is a line of it; `make bench-dirty` writes them."""
    shown = [line.split(" | ")[:3] for line in PAGE.splitlines() if re.match(r"\| \d \|", line)]
    steps = [
        [f"| {day}", tool.name.format(version(tool.package) if tool.package else __version__), tried.said]
        for tool in tools(Path())
        for day, several in zip(DAYS, tool.days, strict=True)
        for tried in several
    ]
    assert sorted(shown) == sorted(steps)
    assert HEAD in PAGE
