"""Files that were renamed and then appended to: when their beginnings are read, and which version each begins with."""

import os
from pathlib import Path
from typing import ClassVar

import pytest

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.core.errors import AccessError, ObjectChanged
from compactor.core.ports import ObjectInfo
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.manifests.sources.planning import OnReplaced
from tests.unit.manifests.test_folder_life import FolderLife

MONTH_AGO = 30 * 86_400


class Reading(LocalSeenFiles):
    """Counts the files whose beginnings are read; `error` makes that fail."""

    asked: ClassVar[list[str]] = []
    error: Exception | None = None

    def beginnings(self, file: ObjectInfo, asked: AskedBeginnings) -> set[Beginning]:
        self.asked.append(Path(file.uri).name)
        if self.error is not None:
            raise self.error
        return super().beginnings(file, asked)


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> FolderLife:
    """A folder with three files that have rows."""
    monkeypatch.setattr("tests.unit.manifests.test_folder_life.LocalSeenFiles", Reading)
    monkeypatch.setattr(Reading, "asked", [])
    found = FolderLife()
    found.begin()
    for name in ("a.ndjson", "b.ndjson", "2026-01-02-c.ndjson"):
        found.write(name, 2)
    found.compact("quarantine", None)
    return found


def asked(life: FolderLife, policy: OnReplaced = "quarantine") -> tuple[list[str], list[str]]:
    """The files whose beginnings a call reads, and those that it names."""
    Reading.asked.clear()
    left_out = life._call(policy, None)
    return sorted(Reading.asked), sorted(Path(each.uri).name for each in left_out)


def test_nothing_is_read_where_nothing_is_gone(life: FolderLife) -> None:
    """New files, touched ones, and renamed ones that did not change."""
    life.write("sub/d.ndjson", 3)
    life.touch("a.ndjson")
    assert asked(life) == ([], [])
    life.rename("b.ndjson", "b-1.ndjson")
    life.write("sub/e.ndjson", 3)
    assert asked(life) == ([], [])


def test_a_version_that_is_gone_is_compared_once(life: FolderLife) -> None:
    """With the files that are new when it is missed first, unless it comes back; not with shorter ones."""
    life.remove("a.ndjson")
    life.write("short.ndjson", 1)
    assert asked(life) == ([], [])
    life.remove("b.ndjson")
    life.write("d.ndjson", 3)
    assert asked(life) == (["d.ndjson"], [])
    life.write("e.ndjson", 3)
    assert asked(life) == ([], [])
    content, time = life.earlier["a.ndjson"][0]
    life._write("a.ndjson", content, time)
    assert asked(life) == ([], [])
    life.rotate("a.ndjson", "f.ndjson")
    assert asked(life) == (["f.ndjson"], ["f.ndjson"])


def test_it_is_named_until_a_person_decides(life: FolderLife) -> None:
    """Both names and versions are told; its rows cannot be made again under another name."""
    life.rotate("a.ndjson", "d.ndjson")
    for policy in ("quarantine", "rebuild", "quarantine"):
        assert asked(life, policy) == (["d.ndjson"], ["d.ndjson"])
    [found] = life._call("quarantine", None)
    assert f"as {life.raw}/a.ndjson, which is gone; now it is 57 bytes of" in found.detail
    [found] = life._call("rebuild", None)
    assert f"it was {life.raw}/a.ndjson then" in found.detail
    assert asked(life, "append")[1] == []
    assert asked(life)[1] == []


def test_a_replaced_file_that_is_renamed_later(life: FolderLife) -> None:
    """It is named under its new name as well, though a call was made in between."""
    life.append("a.ndjson")
    assert asked(life) == ([], ["a.ndjson"])
    life.write("d.ndjson", 4)
    assert asked(life) == (["d.ndjson"], ["a.ndjson"])
    life.rename("a.ndjson", "e.ndjson")
    assert asked(life) == (["e.ndjson"], ["e.ndjson"])


@pytest.mark.parametrize("error", [AccessError("no right"), ObjectChanged("changed")])
def test_a_file_that_cannot_be_read_is_compared_later(
    life: FolderLife, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is not passed over meanwhile."""
    life.rotate("a.ndjson", "d.ndjson")
    monkeypatch.setattr(Reading, "error", error)
    monkeypatch.setattr("compactor.manifests.planning.Planner.take", lambda *_, **__: None)
    assert asked(life) == (["d.ndjson"], [])
    monkeypatch.undo()
    monkeypatch.setattr("tests.unit.manifests.test_folder_life.LocalSeenFiles", Reading)
    assert asked(life) == (["d.ndjson"], ["d.ndjson"])


def test_a_file_that_is_still_written(life: FolderLife) -> None:
    """It is not compared before it is complete, and no version is passed over until then."""
    life.rotate("a.ndjson", "d.ndjson")
    planner_of = life.planner
    os.utime(life.raw / "d.ndjson", (life.harness.clock.now().timestamp(),) * 2)
    life.write("e.ndjson", 4)
    plan = planner_of("quarantine").plan(settle_seconds=2)
    assert (Reading.asked, plan.skipped) == (["e.ndjson"], {"unsettled": 1})
    life._work(None)
    life.harness.clock.advance(60)
    assert asked(life) == (["d.ndjson"], ["d.ndjson"])


def test_a_dry_run_remembers_nothing(life: FolderLife) -> None:
    """The call after it finds the same."""
    life.rotate("a.ndjson", "d.ndjson")
    life.remove("b.ndjson")
    life.write("e.ndjson", 4)
    for dry_run in (True, True, False):
        Reading.asked.clear()
        plan = life.planner("quarantine").plan(dry_run=dry_run)
        assert (sorted(Reading.asked), len(plan.left_out)) == (["d.ndjson", "e.ndjson"], 1)


def test_each_version_is_that_of_one_file(life: FolderLife) -> None:
    """Of two files that begin with it, the second one is new; of two versions, the longer one counts."""
    path = life.raw / "a.ndjson"
    path.write_bytes((life.raw / "b.ndjson").read_bytes() + path.read_bytes())
    os.utime(path, (1_767_100_000,) * 2)
    life.remove("b.ndjson")
    life.remove("2026-01-02-c.ndjson")
    content = path.read_bytes()
    path.unlink()
    life._write("d.ndjson", content + life._lines(1), 1_767_200_000 * 10**9)
    life._write("e.ndjson", content + life._lines(2), 1_767_200_000 * 10**9)
    assert asked(life) == (["d.ndjson", "e.ndjson"], ["d.ndjson"])
