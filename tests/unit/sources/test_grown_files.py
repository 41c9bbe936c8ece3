"""Files that were renamed and then appended to: when their beginnings are read, and which version each begins with."""

import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.core.errors import AccessError, ObjectChanged
from compactor.core.ports import ObjectInfo
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.sources.folders.planning import OnReplaced
from compactor.sources.input_files import FileScope
from tests.support.harness import written
from tests.unit.sources.test_folder_life import FolderLife


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
    monkeypatch.setattr("compactor.adapters.local.sqlite.seen_files.LocalSeenFiles", Reading)
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
    assert f"UTC as {life.raw}/a.ndjson, which no longer exists; now it is 57 bytes written" in found.detail
    [found] = life._call("rebuild", None)
    assert f"it was {life.raw}/a.ndjson then" in found.detail
    assert asked(life, "append")[1] == []
    assert asked(life)[1] == []


def test_a_replaced_file_that_is_renamed_later(life: FolderLife) -> None:
    """It is named under its new name as well, though a call was made in between."""
    life.rotate("a.ndjson", "d.ndjson")
    assert asked(life) == (["d.ndjson"], ["d.ndjson"])
    life.rename("d.ndjson", "e.ndjson")
    assert asked(life) == (["e.ndjson"], ["e.ndjson"])
    life.write("a.ndjson", 1)
    assert asked(life) == (["e.ndjson"], [])
    assert len(life.rows()) == len(set(life.rows())) == 8


@pytest.mark.parametrize("error", [AccessError("no right"), ObjectChanged("changed")])
def test_a_file_that_cannot_be_read_is_compared_later(
    life: FolderLife, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version is not passed over meanwhile."""
    life.rotate("a.ndjson", "d.ndjson")
    monkeypatch.setattr(Reading, "error", error)
    monkeypatch.setattr("compactor.sources.planner.Planner._write", lambda *_, **__: None)
    assert asked(life) == (["d.ndjson"], [])
    monkeypatch.undo()
    monkeypatch.setattr("compactor.adapters.local.sqlite.seen_files.LocalSeenFiles", Reading)
    assert asked(life) == (["d.ndjson"], ["d.ndjson"])


def test_a_file_that_is_still_written(life: FolderLife) -> None:
    """It is not compared before it is complete, and no version is passed over until then."""
    life.rotate("a.ndjson", "d.ndjson")
    planner_of = life.planner
    os.utime(life.raw / "d.ndjson", (life.harness.clock.now().timestamp(),) * 2)
    life.write("e.ndjson", 4)
    plan = replace(planner_of("quarantine"), scope=FileScope(settle_seconds=2)).plan()
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


def test_a_copy_of_what_a_file_was_before_it_grew(life: FolderLife) -> None:
    """It is a file of its own, as the file begins with its bytes still."""
    before = (life.raw / "a.ndjson").read_bytes()
    life.append("a.ndjson")
    assert asked(life)[1] == []
    for number, content in enumerate((before, before + life._lines(1))):
        life._write(f"d-{number}.ndjson", content, next(life.times))
        assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 1 + 2 + 3


def test_a_copy_of_a_file_that_is_still_written(life: FolderLife) -> None:
    """The copy is new, though the file waits and no listing has it as it was."""
    before = (life.raw / "a.ndjson").read_bytes()
    life.append("a.ndjson")
    os.utime(life.raw / "a.ndjson", (life.harness.clock.now().timestamp(),) * 2)
    life._write("d.ndjson", before + life._lines(1), next(life.times))
    replace(life.planner("quarantine"), scope=FileScope(settle_seconds=2)).plan()
    life.harness.clock.advance(60)
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 1 + 3


def test_a_file_that_lost_lines_is_replaced(life: FolderLife) -> None:
    """It begins with its first version, but not with the lines that followed: some of those may come again."""
    before = (life.raw / "a.ndjson").read_bytes()
    life.append("a.ndjson")
    assert asked(life)[1] == []
    life._write("a.ndjson", before + life._lines(2), next(life.times))
    for _ in range(2):
        assert asked(life)[1] == ["a.ndjson"]


def test_a_file_with_the_bytes_of_one_that_was_removed(life: FolderLife) -> None:
    """It is taken: nothing tells that it is the same file. One that was only renamed has the same time."""
    content = (life.raw / "a.ndjson").read_bytes()
    life.remove("a.ndjson")
    life._write("d.ndjson", content, next(life.times))
    life.touch("b.ndjson")
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 2
    life.rename("b.ndjson", "e.ndjson")
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 2


def test_a_log_that_is_compressed_after_its_rotation(life: FolderLife) -> None:
    """It has its rows; if it has more lines, it is left out until it is decompressed."""
    life.rotate("a.ndjson", "a-1.ndjson")
    life.write("a.ndjson", 1)
    assert asked(life)[1] == []
    life.compress("a-1.ndjson", goes_on=False)
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 1 + 1
    life.compress("a.ndjson", grown=True)
    [found] = life._call("append", None)
    assert (found.reason, Path(found.uri).name) == ("compressed", "a.ndjson.gz")
    content = gzip.decompress((life.raw / "a.ndjson.gz").read_bytes())
    life.remove("a.ndjson.gz")
    life._write("a-2.ndjson", content, next(life.times))
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 1 + 1 + 1 + 1


def test_a_compressed_file_with_the_bytes_of_one_that_was_removed(life: FolderLife) -> None:
    """Its name shows whether it is that file."""
    life.write("d.ndjson", 1)
    life.rename("d.ndjson", "d.ndjson.bak")
    life.compress("b.ndjson", goes_on=False)
    (life.raw / "b.ndjson.gz").rename(life.raw / "e.ndjson.gz")
    assert asked(life)[1] == []
    assert len(life.rows()) == 6 + 1 + 2


def test_an_unfinished_line(life: FolderLife) -> None:
    """It waits for its line feed, and is named, unless it is a record: that is taken, and its line feed may come."""
    path = life.raw / "a.ndjson"
    life.append("a.ndjson")
    life._write("a.ndjson", path.read_bytes() + b'{"id": "0000', next(life.times), in_place=True)
    for _ in range(3):
        [found] = life._call("quarantine", None)
        assert (found.reason, found.detail.partition(",")[0]) == ("unfinished", "its last line")
        assert len(life.rows()) == 7
    life._write("a.ndjson", path.read_bytes() + b'0099"}', next(life.times), in_place=True)
    for rows in (8, 9, 10, 11):
        assert asked(life)[1] == []
        assert len(life.rows()) == rows
        assert life.harness.verification().discrepancies == []
        if rows == 8:
            life.finish("a.ndjson")
        life.append("a.ndjson", is_whole=False)
    assert asked(life)[1] == []
    life._write("a.ndjson", path.read_bytes() + b", 1\n", next(life.times), in_place=True)
    [found] = life._call("quarantine", None)
    assert "begins with its earlier content: the earlier lines did not end with a line feed" in found.detail


def test_an_unfinished_line_that_was_just_written(life: FolderLife) -> None:
    """It is not named before a writer has had a minute to finish it, and its file is to be looked at again."""
    path = life.raw / "a.ndjson"
    life._write("a.ndjson", path.read_bytes() + b'{"id": "0000', next(life.times), in_place=True)
    os.utime(path, (life.harness.clock.now().timestamp(),) * 2)
    for seconds in (0, 59):
        life.harness.clock.advance(seconds)
        plan = life.planner("quarantine").plan()
        assert (plan.left_out, plan.unfinished, plan.planned_before) == ([], [str(path)], 3)
    life.harness.clock.advance(1)
    plan = life.planner("quarantine").plan()
    assert ([each.reason for each in plan.left_out], plan.unfinished) == (["unfinished"], [])


@pytest.mark.parametrize("length", [4096, 300])
def test_a_block_of_a_buffering_writer(life: FolderLife, length: int) -> None:
    """It ends inside a line, and the next one comes later: what is long enough for a block waits for it."""
    rows, content = len(life.rows()), life._lines(length // 10)
    now_ns = int(life.harness.clock.now().timestamp() * 10**9)
    life._write("sub/d.ndjson", content[:length], now_ns - 10 * 10**9)
    assert life._call("quarantine", None) == []
    is_block = length == 4096
    assert len(life.rows()) - rows == content[:length].count(b"\n")
    assert life.unfinished == ({f"{life.raw}/sub/d.ndjson"} if is_block else set())
    assert len(life.harness.rejects()) == (0 if is_block else 1)
    life._write("sub/d.ndjson", content, now_ns, in_place=True)
    life.harness.clock.advance(3600)
    assert [each.reason for each in life._call("quarantine", None)] == ([] if is_block else ["replaced"])
    assert not is_block or len(life.rows()) - rows == length // 10
    life.teardown()


def test_a_block_that_ends_inside_the_first_line(life: FolderLife) -> None:
    """The file waits, for nothing of it is complete."""
    rows, line = len(life.rows()), b'{"id": "%b"}\n' % (b"x" * 9000)
    now_ns = int(life.harness.clock.now().timestamp() * 10**9)
    life._write("sub/d.ndjson", line[:8192], now_ns - 10 * 10**9)
    assert [each.reason for each in life._call("quarantine", None)] == ["unsettled"]
    life._write("sub/d.ndjson", line, now_ns, in_place=True)
    life.harness.clock.advance(3600)
    assert life._call("quarantine", None) == []
    assert len(life.rows()) == rows + 1
    life.teardown()


def test_grown_files_that_wait_for_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """By setting, an appended file is like a replaced one, also while it is written."""
    monkeypatch.setattr(FolderLife, "reading", {"on_grown": "quarantine"})
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    life.append("a.ndjson")
    [found] = life._call("quarantine", None)
    assert found.reason == "replaced"
    assert found.detail.endswith('and begins with its earlier content: input.on_grown is "quarantine"')
    life.compact("quarantine", None, "a.ndjson")
    assert len(life.rows()) == 2
    assert life._call("rebuild", None) == []
    assert len(life.rows()) == 5
    life.teardown()


def test_lines_in_two_ranges_are_found(life: FolderLife) -> None:
    """Manifests of others may name any lines: verifying finds two ranges that begin at the same byte."""
    life.append("a.ndjson")
    [planned] = written(life.harness, life.planner("quarantine").plan().manifests)
    life._work(None)
    assert life.harness.verification().discrepancies == []
    life.touch("a.ndjson")
    file = planned.files[0].model_copy(update={"etag": life.harness.named(planned.files[0].uri).etag})
    other = planned.model_copy(update={"manifest_id": "other", "files": (file,)})
    life.harness.put_manifest("other.json", other.to_json())
    life._work(None)
    assert len(life.rows()) == 8
    [found] = life.harness.verification().discrepancies
    assert found.expected == "the rows of each file version once"
