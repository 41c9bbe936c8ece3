"""A folder whose files are restored, touched, appended to, replaced, renamed and removed between calls, in any order.

Each line that is ever written has an id of its own. After each call, no id is in two rows, and each id of a file that
is there is in a row, unless the call has named the file.
"""

import gzip
import itertools
import os
import shutil
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.store import LocalStore
from compactor.adapters.source_listing import SourceListing
from compactor.core.crash_points import CrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit
from compactor.core.inputs.source_places import SourcePlace
from compactor.job.results import Result
from compactor.sources.folders.planning import FolderPlanner, OnReplaced, changed_files
from compactor.sources.folders.waiting import PatientPlanner
from compactor.sources.plan import LeftOut
from compactor.wiring import finding, planning, rebuilding, streaming
from tests.support.harness import DiedError, Harness, dying_at
from tests.support.memory_store import MemoryStore

NAMES = ("a.ndjson", "b.ndjson", "2026-01-02-c.ndjson", "sub/d.ndjson")
HEADING = "heading"
FIRST_NS = 1_767_000_000 * 10**9

DEATHS = (PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED, CrashPoint.VERIFIED, CrashPoint.DECIDED, CrashPoint.PUBLISHED)

"""What tells digests of each kind."""

WAYS = ("append", "torn", "rename", "copy", "replace")
"""What a program does with a file while a call waits for it."""

names = st.sampled_from(NAMES)
policies: st.SearchStrategy[OnReplaced] = st.sampled_from(("quarantine", "rebuild"))


class DiskAndMemory(MemoryStore):
    """Input on a disk, and everything else in memory, which is faster."""

    def __init__(self, harness: Harness, root: str) -> None:
        super().__init__(harness.clock)
        self.disk, self.root = LocalStore(), root

    def stat(self, uri):
        return self.disk.stat(uri) if uri.startswith(self.root) else super().stat(uri)

    def read_range(self, uri, start, length, *, etag=None):
        store = self.disk if uri.startswith(self.root) else super()
        return store.read_range(uri, start, length, etag=etag)

    def read(self, uri, *, etag=None):
        return self.disk.read(uri, etag=etag) if uri.startswith(self.root) else super().read(uri, etag=etag)


class FolderLife(RuleBasedStateMachine):
    """The folder, and the harness that compacts it."""

    reading: ClassVar[dict[str, str]] = {}

    @initialize()
    def begin(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.raw = self.top / "raw"
        self.raw.mkdir()
        self.harness = Harness(
            reading={"allowed_prefixes": [str(self.raw)], **self.reading}, schema={"metadata_columns": ["_source_file"]}
        )
        self.harness.store = DiskAndMemory(self.harness, str(self.raw))
        self.ids, self.times = itertools.count(1), itertools.count(FIRST_NS, 10**9)
        self.earlier: dict[str, list[tuple[bytes, int]]] = {}
        self.holes: dict[str, int] = {}  # the NUL bytes that were skipped, by file
        self.unseen = set[
            str
        ]()  # the originals since the last call: without them, nothing tells that these were copied
        self.unfinished = set[str]()  # whose last lines a later call takes
        self.meanwhile: list[partial[None]] = []  # what happens while a call waits
        self.heading = b""  # the first line of each new file
        self.moved = set[str]()  # since the last call, which only a call can tell from new ones once they are copied

    def teardown(self) -> None:
        if hasattr(self, "top"):
            shutil.rmtree(self.top)

    @rule(name=names, number=st.integers(1, 3))
    def write(self, name: str, number: int) -> None:
        """A new file, or one in the place of another."""
        self._write(name, self.heading + self._lines(number), next(self.times))

    @rule(name=names, is_whole=st.booleans())
    def append(self, name: str, is_whole: bool = True) -> None:
        """One more line, perhaps without its line feed, which may follow later."""
        path = self.raw / name
        if path.exists():
            before = path.read_bytes()
            before += b"\n" if before and not before.endswith(b"\n") else b""
            line = self._lines(1) if is_whole else self._lines(1)[:-1]
            self._write(name, before + line, next(self.times), in_place=True)

    @rule(name=names)
    def finish(self, name: str) -> None:
        """The line feed of the last line comes."""
        path = self.raw / name
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            self._write(name, path.read_bytes() + b"\n", next(self.times), in_place=True)

    @rule(name=names)
    def replace_unseen(self, name: str) -> None:
        """Other bytes of the same length, and the time is set back."""
        path = self.raw / name
        if path.exists():
            before = path.read_bytes()
            lines = self._lines(before.count(b"\n"))
            self._write(name, lines.rjust(len(before)), path.stat().st_mtime_ns)

    @rule(name=names)
    def touch(self, name: str) -> None:
        if (self.raw / name).exists() and name not in self.moved:
            self.unseen.add(name)
            now = next(self.times)
            os.utime(self.raw / name, ns=(now, now))

    @rule(name=names)
    def restore(self, name: str) -> None:
        """The same file by a backup: only the inode is another one."""
        path = self.raw / name
        if path.exists():
            shutil.copy2(path, self.top / "copy")
            (self.top / "copy").replace(path)

    @rule(name=names, back=st.integers(0, 3))
    def restore_earlier(self, name: str, back: int) -> None:
        """A version of before, with its time."""
        versions = self.earlier.get(name, [])
        content, time = versions[back % len(versions)] if versions else (b"", 0)
        # A line that is in another file by now would be there twice by right.
        if versions and not any(
            set(ids(content)) & set(ids(path.read_bytes()))
            for path in self.raw.rglob("*.ndjson")
            if path != self.raw / name
        ):
            self._write(name, content, time)

    @rule(name=names, other=names)
    def rename(self, name: str, other: str) -> None:
        path, target = self.raw / name, self.raw / other
        if path.exists() and path != target and name not in self.unseen:
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
            self.moved.add(other)

    @rule(name=names, other=names)
    def rotate(self, name: str, other: str) -> None:
        """Its last lines come, it is moved away, and a new one may be begun under its name."""
        self.append(name)
        self.rename(name, other)

    @rule(name=names, other=names, grown=st.booleans(), number=st.integers(0, 2), appends=st.booleans())
    def copy_and_truncate(self, name: str, other: str, number: int, grown: bool = False, appends: bool = True) -> None:
        """It is copied, perhaps with last lines, and goes on empty, or at the old offset of a writer."""
        path = self.raw / name
        if path.exists() and name != other and name not in self.moved:
            if grown:
                self.append(name)
            self.unseen.add(name)
            copied = path.read_bytes()
            self._write(other, copied, next(self.times))
            hole = b"" if appends or not number else bytes(len(copied))
            self._write(name, hole + self._lines(number), next(self.times), in_place=True)

    @rule(name=names, grown=st.booleans())
    def compress(self, name: str, grown: bool = False, goes_on: bool = True) -> None:
        """It is compressed at its rotation, perhaps with last lines, keeps its time, and a new one begins."""
        path = self.raw / name
        if grown:
            self.append(name)
        target = path.with_name(f"{path.name}.gz")
        if path.exists() and not target.exists() and name not in self.moved:
            time = path.stat().st_mtime_ns
            target.write_bytes(gzip.compress(path.read_bytes()))
            os.utime(target, ns=(time, time))
            path.unlink()
            if goes_on:
                self.write(name, 1)

    @rule(name=names)
    def remove(self, name: str) -> None:
        if name not in self.unseen:
            (self.raw / name).unlink(missing_ok=True)

    @rule(
        policy=policies,
        dies=st.none() | st.sampled_from(DEATHS),
        written=st.none() | names,
        what=st.sampled_from(WAYS),
    )
    def compact(
        self, policy: OnReplaced, dies: CrashPoint | None, written: str | None = None, what: str = "append"
    ) -> None:
        """A call; it may be killed, so that the next one goes on. Meanwhile a file may be written."""
        self.harness.clock.advance(3600)
        self.meanwhile = []
        if written is not None and (self.raw / written).exists():
            for each in ("append", what):
                self.meanwhile.append(partial(self._write_now, written, each))
            self.meanwhile.pop(0)()
        if dies is not None:
            try:
                self._call(policy, dies)
            except DiedError:
                return
        else:
            self._check(self._call(policy, None))

    def _write_now(self, name: str, what: str) -> None:
        """Write a file as a program that goes on: its time is that of the clock."""
        times, now = self.times, int(self.harness.clock.now().timestamp() * 10**9)
        self.times = itertools.count(now)
        if what in {"append", "torn"}:
            self.append(name, is_whole=what == "append")
        elif what == "rename":
            self.rotate(name, "sub/d.ndjson")
            self.write(name, 1)
        elif what == "copy":
            self.copy_and_truncate(name, "sub/d.ndjson", 2, grown=True)
        else:
            self.write(name, 2)
        self.times = times

    def _wait(self, seconds: float) -> None:
        self.harness.clock.advance(seconds)
        if self.meanwhile:
            self.meanwhile.pop(0)()

    def planner(self, policy: OnReplaced, dies: CrashPoint | None = None) -> FolderPlanner:
        app = self.harness.app(on_crash_point=dying_at(dies) if dies else ignore_crash_point)
        app.seen_file, app.listing = str(self.top / "seen.sqlite"), SourceListing(app.store, [str(self.raw)])
        made = planning.planner(app)
        return finding.folder_planner(app, [SourcePlace(str(self.raw))], on_replaced=policy, planner=made)

    def _call(self, policy: OnReplaced, dies: CrashPoint | None) -> list[LeftOut]:
        harness = self.harness
        app = harness.app(on_crash_point=dying_at(dies) if dies else ignore_crash_point)
        changed_files(self._work(None), planning.claimer(app))
        planner = PatientPlanner(self.planner(policy, dies), harness.clock, self._wait)
        plan = planner.plan(planner.scan())
        self.unfinished = set(plan.unfinished)
        left_out = [*plan.left_out, *changed_files(self._work(dies), planning.claimer(app))]
        if plan.replacements:
            replaced = rebuilding.replacer(app, lambda _: harness.engine()).replace(plan.replacements)
            left_out += [LeftOut(each.file.uri, "replaced", why) for each, why in replaced.refused]
        self.moved.clear()
        self.unseen.clear()
        return left_out

    def _work(self, dies: CrashPoint | None) -> list[Commit]:
        """Process what waits; returns what was committed."""
        harness, commits = self.harness, list[Commit]()
        if dies is not None:
            harness.runner(on_crash_point=dying_at(dies)).run(harness.waiting())

        def on_result(result: Result) -> None:
            if isinstance(result.outcome, Commit):
                commits.append(result.outcome)
                self.holes.update((each.uri, each.hole_bytes) for each in result.outcome.files if each.hole_bytes)

        job = harness.app()
        job.on_result = on_result
        source = ListedManifests(harness.store, harness.layout.manifests_folder)
        streaming.service_on(job, harness.engine(), source).run(once=True)
        return commits

    def _check(self, left_out: list[LeftOut]) -> None:
        found = Counter(self.rows())
        assert max((number for each, number in found.items() if each != HEADING), default=0) <= 1
        assert not self.harness.rejects(), "a line was read with the NUL bytes before it"
        verified = self.harness.verification()
        named = {each.uri for each in (*left_out, *verified.quarantined_files)} | self.unfinished
        headings = 0
        for path in filter(Path.is_file, self.raw.rglob("*")):
            if str(path) not in named:
                content = path.read_bytes()
                there = ids(gzip.decompress(content) if path.suffix == ".gz" else content)
                missing = set(there) - found.keys()
                assert not missing, f"{path}: {missing} nowhere"
                headings += HEADING in there
        assert found[HEADING] >= headings
        assert (verified.discrepancies, verified.unfinished) == ([], 0)

    def rows(self) -> list[str]:
        """The ids of all rows."""
        outputs = self.harness.store.list("/w/output/")
        return [row["id"] for info in outputs for row in self.harness.table(info.uri)]

    def _lines(self, number: int) -> bytes:
        return b"".join(b'{"id": "%08d"}\n' % next(self.ids) for _ in range(number))

    def _write(self, name: str, content: bytes, time: int, *, in_place: bool = False) -> None:
        path = self.raw / name
        path.parent.mkdir(exist_ok=True)
        if not in_place:
            path.unlink(missing_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(time, time))
        self.earlier.setdefault(name, []).append((content, time))


def ids(content: bytes) -> list[str]:
    return [line.split(b'"')[3].decode() for line in content.split(b"\n") if b'"' in line]


def test_a_copy_that_is_gone() -> None:
    """The original grew, and begins with the bytes of both. It is a later version of itself, so it is read again."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    life._write("b.ndjson", (life.raw / "a.ndjson").read_bytes(), next(life.times))
    life._call("quarantine", None)
    life.remove("b.ndjson")
    life.append("a.ndjson")
    assert life._call("rebuild", None) == []
    life.teardown()


def test_a_file_renamed_between_its_rows_and_their_commit() -> None:
    """A call died when the rows were made and not decided: they are those of the file, whatever its name is by now."""
    life = FolderLife()
    life.begin()
    life.write("b.ndjson", 2)
    life.compact("quarantine", CrashPoint.VERIFIED)
    life.rename("b.ndjson", "a.ndjson")
    life.compact("quarantine", None)
    life.compact("rebuild", None)
    life.teardown()


@pytest.mark.parametrize("dies", [None, *DEATHS])
def test_a_log_that_grows(dies: CrashPoint | None) -> None:
    """Its new lines are taken, whatever dies, and whether it goes on growing meanwhile."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    for _ in range(2):
        life.append("a.ndjson")
        life.compact("quarantine", dies)
        life.append("a.ndjson")
        life.compact("quarantine", dies)
        life.compact("quarantine", None)
        assert life._call("quarantine", None) == []
    assert len(life.rows()) == 6
    life.teardown()


@pytest.mark.parametrize("dies", [None, *DEATHS])
@pytest.mark.parametrize("grown", [False, True])
def test_a_log_that_is_copied_and_truncated(grown: bool, dies: CrashPoint | None) -> None:
    """Each line once: the copies are what the log was, under any number that they get later."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    for number in (1, 0, 2):
        life.rename("b.ndjson", "sub/d.ndjson")
        life.copy_and_truncate("a.ndjson", "b.ndjson", number, grown)
        life.compact("quarantine", dies)
        life.compact("quarantine", None)
        life.append("a.ndjson")
        life.compact("quarantine", None)
        assert life._call("quarantine", None) == []
    assert len(life.rows()) == 8 + 3 * grown
    life.teardown()


@pytest.mark.parametrize("dies", [None, *DEATHS])
def test_a_log_whose_writer_does_not_append(dies: CrashPoint | None) -> None:
    """After each truncation it begins with NUL bytes, which are no line; the copies of it have them, too."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    for _ in range(3):
        life.rename("b.ndjson", "sub/d.ndjson")
        hole_bytes = (life.raw / "a.ndjson").stat().st_size
        life.copy_and_truncate("a.ndjson", "b.ndjson", 1, appends=False)
        life.compact("quarantine", dies)
        life.compact("quarantine", None)
        assert dies or life.holes.pop(str(life.raw / "a.ndjson")) == hole_bytes
        life.append("a.ndjson")
        life.compact("quarantine", None)
        assert life._call("quarantine", None) == []
        assert dies or not life.holes
    assert len(life.rows()) == 8
    life.teardown()


def log_under_another_name() -> FolderLife:
    """A log with rows was copied with one more line, and then truncated; a call took that line."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    life.copy_and_truncate("a.ndjson", "b.ndjson", 0, grown=True)
    life.compact("quarantine", None)
    return life


def test_a_log_that_comes_back_under_its_name() -> None:
    """Its lines that went on under another name have rows, however often calls pass over that name."""
    life = log_under_another_name()
    life.rotate("b.ndjson", "a.ndjson")
    for _ in range(3):
        life.compact("rebuild", None)
    assert len(life.rows()) == 3
    life.teardown()


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_log_that_goes_on_under_its_earlier_name(is_compressed: bool) -> None:
    """It begins where its rows under the later name end. Until that has another file, it is named, as is its copy."""
    life = log_under_another_name()
    life.rename("b.ndjson", "a.ndjson")
    life.compact("quarantine", None)
    life.append("a.ndjson")
    for _ in range(2):
        life.compact("quarantine", None)
    if is_compressed:
        life.compress("a.ndjson", goes_on=False)
    else:
        life.write("b.ndjson", 1)
    assert [each.reason for each in life._call("quarantine", None)] == ["replaced"] * is_compressed
    assert len(life.rows()) == (3 if is_compressed else 5)
    life.teardown()


@pytest.mark.parametrize("is_in_place", [False, True])
def test_a_file_touched_before_and_after_it_was_renamed(is_in_place: bool) -> None:
    """No manifest has its last version, but the bytes that were seen under its name are those of one."""
    life = FolderLife()
    life.begin()
    for name in NAMES[: 1 + is_in_place]:
        life.write(name, 2)
    life.compact("quarantine", None)
    life.touch("a.ndjson")
    life.compact("quarantine", None)
    for name, other in itertools.pairwise(NAMES[:3]):
        life.rename(name, other)
        for _ in range(2):
            life.compact("quarantine", None)
            life.touch(other)
            assert life._call("rebuild", None) == []
    assert len(life.rows()) == 2 + 2 * is_in_place
    life.teardown()


@pytest.mark.parametrize("name", ["a.ndjson", "b.ndjson"])
def test_a_log_that_was_gone_for_a_while(name: str) -> None:
    """It is back, with another time or name, so it may rotate again: its copies begin with lines that have rows."""
    life = FolderLife()
    life.begin()
    life.write("a.ndjson", 2)
    life.compact("quarantine", None)
    [(content, time)] = life.earlier["a.ndjson"]
    life.remove("a.ndjson")
    life.write("2026-01-02-c.ndjson", 3)
    life.compact("quarantine", None)
    life._write(name, content, time if name != "a.ndjson" else next(life.times))
    life.compact("quarantine", None)
    life.copy_and_truncate(name, "sub/d.ndjson", 1, grown=True)
    life.compact("quarantine", None)
    life.teardown()


@pytest.mark.parametrize("rotates", ["rename", "copy"])
def test_a_log_that_begins_like_the_rotated_one(rotates: str) -> None:
    """Its first line has no time, so it is the one that the earlier log began with: each is a row."""
    life = FolderLife()
    life.begin()
    first = b'{"id": "%b"}\n' % HEADING.encode()
    for number in range(3):
        life._write("a.ndjson", first, next(life.times))
        for _ in range(2):
            life.compact("quarantine", None)
            assert Counter(life.rows())[HEADING] == number + 1
            life.append("a.ndjson")
        life.compact("quarantine", None)
        assert len(life.rows()) == 3 * (number + 1)
        if rotates == "rename":
            life.rename("a.ndjson", NAMES[1 + number])
        else:
            life._write(NAMES[1 + number], (life.raw / "a.ndjson").read_bytes(), next(life.times))
    life.teardown()


def test_a_log_whose_first_lines_come_one_by_one() -> None:
    """It is read before it has all lines with which the earlier log began, and goes on from there."""
    life = FolderLife()
    life.begin()
    first, second = b'{"id": "%b"}\n' % HEADING.encode(), b'{"id": "heading 2"}\n'
    life._write("a.ndjson", first + second, next(life.times))
    life.compact("quarantine", None)
    life.append("a.ndjson")
    life.compact("quarantine", None)
    life.rename("a.ndjson", "b.ndjson")
    for content in (first, first + second, first + second + life._lines(1)):
        life._write("a.ndjson", content, next(life.times), in_place=True)
        assert life._call("quarantine", None) == []
    assert Counter(life.rows()) == {HEADING: 2, "heading 2": 2, "00000001": 1, "00000002": 1}
    life.teardown()


@pytest.mark.parametrize("is_compressed", [False, True])
def test_logs_that_are_numbered_anew(is_compressed: bool) -> None:
    """Each gets the next number, a new time and perhaps a compressor's ending, and no name is as it was."""
    life = FolderLife()
    life.begin()
    for name in ("a.ndjson.1", "a.ndjson"):
        life.write(name, 2)
    life.compact("quarantine", None)
    for name, other in (("a.ndjson.1", "a.ndjson.2"), ("a.ndjson", "a.ndjson.1")):
        content = (life.raw / name).read_bytes()
        (life.raw / name).unlink()
        ending = ".gz" if is_compressed else ""
        life._write(other + ending, gzip.compress(content) if is_compressed else content, next(life.times))
    life.write("a.ndjson", 1)
    assert life._call("quarantine", None) == []
    assert len(life.rows()) == 5
    life.teardown()


def test_a_log_that_begins_like_one_that_went_on_elsewhere() -> None:
    """That one is known by now, and nothing but its range tells that the log before both has its later lines."""
    life = FolderLife()
    life.begin()
    life.heading = b'{"id": "%b"}\n' % HEADING.encode()
    life.write("a.ndjson", 0)
    life.compact("quarantine", None)
    life.copy_and_truncate("a.ndjson", "b.ndjson", 2, grown=True)
    for _ in range(2):
        life.compact("quarantine", None)
    life.write("2026-01-02-c.ndjson", 1)
    life.compact("quarantine", None)
    assert Counter(life.rows())[HEADING] == 2
    life.teardown()


def test_files_that_grow_and_are_renamed() -> None:
    """Between two calls, one in the place of the other: each line is a row once, or its file is named."""
    life = FolderLife()
    life.begin()
    for name in ("a.ndjson", "b.ndjson"):
        life.write(name, 2)
    life.compact("quarantine", None)
    life.rotate("b.ndjson", "sub/d.ndjson")
    life.rotate("a.ndjson", "b.ndjson")
    life.write("a.ndjson", 1)
    for policy in ("quarantine", "rebuild", "quarantine"):
        life.compact(policy, None)
    life.rename("b.ndjson", "2026-01-02-c.ndjson")
    life.compact("quarantine", None)
    life.teardown()


def test_a_file_that_grew_takes_the_place_of_another() -> None:
    """Its old lines stay the rows of its old name, and are in no rebuild of the file that it replaced."""
    life = FolderLife()
    life.begin()
    for name in ("a.ndjson", "b.ndjson", "2026-01-02-c.ndjson"):  # the last one in a manifest of its own
        life.write(name, 2)
    life.compact("quarantine", None)
    life.rotate("a.ndjson", "2026-01-02-c.ndjson")
    for policy in ("quarantine", "rebuild", "quarantine"):
        life.compact(policy, None)
    [found] = life._call("rebuild", None)
    assert found.detail.startswith(f"it was {life.raw}/a.ndjson then")
    life.append("2026-01-02-c.ndjson")
    life.rename("2026-01-02-c.ndjson", "a.ndjson")
    for policy in ("quarantine", "rebuild", "rebuild"):
        life.compact(policy, None)
    life.teardown()


def test_a_copy_and_its_original_both_grow() -> None:
    """Of the original the new line is taken, as it would be alone; the copy is a file of its own."""
    life = FolderLife()
    life.begin()
    life.write("b.ndjson", 2)
    life.compact("quarantine", None)
    path = life.raw / "b.ndjson"
    life._write("a.ndjson", path.read_bytes() + life._lines(1), next(life.times))
    life.append("b.ndjson")
    for _ in range(2):
        assert life._call("quarantine", None) == []
    rows = Counter(life.rows())
    in_files = Counter(each for path in life.raw.rglob("*.ndjson") for each in ids(path.read_bytes()))
    assert rows == in_files
    life.teardown()


@pytest.mark.parametrize("seed", range(int(os.environ.get("FOLDER_HISTORIES", "30"))))
def test_a_history_of_logs(seed: int) -> None:
    """Few names and many calls, which hypothesis rarely comes to: logs grow, and rotate in any way."""
    random, life = Random(seed), FolderLife()
    name = lambda: random.choice(NAMES[:3])  # noqa: E731
    life.begin()
    life.heading = b'{"id": "%b"}\n' % HEADING.encode() if seed % 2 else b""
    doings = {
        lambda: life.compact(random.choice(("quarantine", "quarantine", "rebuild")), None): 10,
        lambda: life.compact("quarantine", random.choice(DEATHS)): 3,
        lambda: life.compact("quarantine", None, name(), random.choice(WAYS)): 3,
        lambda: life.compact("quarantine", random.choice(DEATHS), name(), random.choice(WAYS)): 1,
        lambda: life.append(name()): 6,
        lambda: life.append(name(), is_whole=False): 1,
        lambda: life.finish(name()): 1,
        lambda: life.write(name(), random.randint(0 if life.heading else 1, 2)): 2,
        lambda: life.rename(name(), name()): 2,
        lambda: life.rotate(name(), name()): 2,
        lambda: life.copy_and_truncate(name(), name(), random.randint(0, 2), random.random() < 0.5): 3,
        lambda: life.copy_and_truncate(name(), name(), random.randint(0, 2), random.random() < 0.5, appends=False): 3,
        lambda: life.compress(name(), random.random() < 0.3): 2,
        lambda: life.touch(name()): 1,
        lambda: (life.compact("quarantine", None), life.remove(name())): 1,
    }
    life.write(NAMES[0], 2)
    for step in random.choices(list(doings), list(doings.values()), k=30):
        step()
    life.compact("quarantine", None)
    life.teardown()


TestFolderLife = FolderLife.TestCase
TestFolderLife.settings = settings(
    max_examples=int(os.environ.get("FOLDER_LIVES", "10")),
    stateful_step_count=20,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
