"""A task of the native engine: each file once, all of it or nothing, and output files of the size asked for."""

import gzip
import io
import itertools
import random
from contextlib import contextmanager
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from compactor.adapters.local.native.kernel import NativeKernel
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import ObjectChanged, ObjectNotFound, StagingError, StoreUnavailable
from compactor.engines.native import bin_task
from compactor.engines.native.bin_task import MAX_PASSES, BinResult, BinTask, write_bin
from compactor.ledger.sizing import is_right_sized
from tests.support import extras
from tests.support.fakes import FaultyStore
from tests.support.memory_store import MemoryStore, MemoryWriter
from tests.support.native_rows import plan_of, rules_of, schema_of

extras.NATIVE.need()

MIB = 1024 * 1024
STAGING = "/w/staging/m-1/1/0/"
SCHEMA = schema_of({"a": "string", "b": "string"})
RESCUING = schema_of({"a": "string", "b": "string"}, rescued=True)
GOOD = b'{"a":1}\n{"a":2,"b":"x"}\n'
LONG = b'{"a":"%s"}\n' % (b"x" * 10_000) * 2_000
"""More than is held back, so that some of its rows are written before its end is seen."""


class Replacing(MemoryStore):
    """A store that replaces a file when most of it has been read, a given number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.replace: dict[str, int] = {}

    def read_range(self, uri, start, length, *, etag=None):
        if start >= 24 * MIB and self.replace.get(uri):
            self.replace[uri] -= 1
            self.put(uri, LONG + LONG)
            raise ObjectChanged(f"{uri}: replaced")
        return super().read_range(uri, start, length, etag=etag)


@pytest.fixture
def store() -> Replacing:
    return Replacing()


def task_of(store, contents: dict[str, bytes], **changes) -> BinTask:
    files = []
    for name, data in contents.items():
        store.put(f"/raw/{name}", data)
        info = store.stat(f"/raw/{name}")
        files.append(ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag))
    settings = {
        "files": tuple(enumerate(files)),
        "stored_bytes": sum(map(len, contents.values())),
        "staging": STAGING,
        "number": 3,
        "plan": plan_of(SCHEMA, metadata=("_source_file",)),
        "rules": rules_of(),
    }
    return BinTask(**{**settings, **changes})


def rows_of(store, result: BinResult) -> list[dict]:
    return [row for uri in result.outputs for row in pq.read_table(io.BytesIO(store.read(uri))).to_pylist()]


def staged(store) -> list[str]:
    return [info.uri.removeprefix(STAGING) for info in store.list(STAGING)]


def test_files_become_one_file_of_rows_and_one_of_rejects(store):
    """In the manifest's order, with a report each; each byte is read once."""
    task = task_of(store, {"1": GOOD, "2": b"no json\n\n" + GOOD, "3": gzip.compress(GOOD)})
    watched = FaultyStore(store)
    result = write_bin(watched, task, NativeKernel)
    assert [(row["_source_file"][-1], row["c0"], row["c1"]) for row in rows_of(store, result)] == [
        (name, *values) for name in "123" for values in (("1", None), ("2", "x"))
    ]
    assert [name[:13] for name in staged(store)] == ["out/000003-0-", "rejects/00000"]
    assert [file.report.records for file in result.files] == [2, 2, 2]
    assert (result.files[1].report.rejects, result.files[1].report.blank_lines) == ({"invalid_json": 1}, 1)
    assert not result.lacks_columns
    assert result.output_bytes == store.stat(result.outputs[0]).size_bytes
    assert watched.calls["read_range"] == 3


@pytest.mark.parametrize("path_columns", [None, {"b": "7"}])
@pytest.mark.parametrize("block_bytes", [1, 20, 1000])
def test_rejects_have_their_places_in_the_file_whatever_the_blocks(store, monkeypatch, block_bytes, path_columns):
    """The kernel reads a piece of a file in blocks of lines, and names lines by their places in the piece."""
    others = (b"bad", b"", b"[]")
    lines = [b'{"a":%d}' % number if number % 3 else others[number // 3 % 3] for number in range(99)]
    data = b"".join(line + b"\n" for line in lines)
    offsets = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    monkeypatch.setattr(bin_task, "BLOCK_BYTES", block_bytes)
    task = task_of(store, {"1": data})
    files = tuple((index, file.model_copy(update={"path_columns": path_columns})) for index, file in task.files)
    result = write_bin(store, replace(task, files=files), NativeKernel)
    rejects = pq.read_table(io.BytesIO(store.read(result.rejects_uri))).to_pylist()
    found = [(row["line_number"], row["byte_offset"], row["raw"]) for row in rejects]
    assert found == [(at + 1, offsets[at], line) for at, line in enumerate(lines) if line.startswith((b"bad", b"[]"))]
    assert [row["c0"] for row in rows_of(store, result)] == [str(number) for number in range(99) if number % 3]


def test_a_second_run_touches_nothing_of_the_first(store):
    """Spark may run a task again while the run that it believes lost continues."""
    task = task_of(store, {"1": GOOD, "2": b"x\n" + GOOD})
    first = write_bin(store, task, NativeKernel)
    versions = {uri: store.stat(uri) for uri in (*first.outputs, first.rejects_uri)}
    second = write_bin(store, task, NativeKernel)
    assert {uri: store.stat(uri) for uri in versions} == versions
    assert rows_of(store, second) == rows_of(store, first)


def test_many_files_that_end_too_early_take_one_more_pass(store):
    """Not one each: a producer that crashed may have left a hundred."""
    broken = gzip.compress(LONG, mtime=0)[:-6]
    kernels = []

    def new_kernel(plan):
        kernels.append(NativeKernel(plan))
        return kernels[-1]

    result = write_bin(store, task_of(store, {"1": GOOD, **dict.fromkeys("23456", broken)}), new_kernel)
    assert (len(kernels), result.records) == (2, 2)


@pytest.mark.parametrize("error", [ObjectNotFound, ObjectChanged])
@pytest.mark.parametrize("moment", ["write", "end"])
def test_an_output_that_cannot_be_written_says_nothing_about_the_input(store, error, moment):
    """An error of a write is passing trouble, and no reason to quarantine the input file that is being read."""

    class Refusing(MemoryWriter):
        def write(self, data):
            if moment == "write":
                raise error("answered with 404")
            super().write(data)

    @contextmanager
    def writer(_uri):
        yield Refusing()
        if moment == "end":
            raise error("answered with 404")

    store.writer = writer
    with pytest.raises(StoreUnavailable, match="could not be written"):
        write_bin(store, task_of(store, {"1": GOOD, "2": LONG, "3": GOOD}), NativeKernel)
    assert staged(store) == []


@pytest.mark.parametrize("body", [GOOD, LONG], ids=["held back", "written"])
def test_a_file_that_ends_too_early_leaves_nothing_behind(store, body):
    """Its rows are withdrawn, or all others are written again without it; so are its rejects and its new keys."""
    broken = gzip.compress(b'bad\n{"late":1}\n' + body, mtime=0)[:-6]
    task = task_of(store, {"1": GOOD, "2": broken, "3": GOOD, "4": broken}, plan=plan_of(RESCUING, rescues=True))
    result = write_bin(store, task, NativeKernel)
    assert [row["c0"] for row in rows_of(store, result)] == ["1", "2", "1", "2"]
    statuses = [file.report.status for file in result.files]
    assert statuses == [FileStatus.COMPACTED, FileStatus.UNREADABLE] * 2
    assert [file.new_keys for file in result.files] == [(), (), (), ()]
    assert result.rejects_uri is None
    assert len(staged(store)) == 1


@pytest.mark.parametrize(("times", "status"), [(1, "compacted"), (9, "changed")])
def test_a_file_that_is_replaced_while_it_is_read_is_begun_anew(store, times, status):
    """If the settings say so, and a few times only; no row of another version remains."""
    task = task_of(store, {"1": GOOD, "2": LONG + LONG}, rules=rules_of(on_changed_file="read"))
    store.replace["/raw/2"] = times
    result = write_bin(store, task, NativeKernel)
    assert result.files[1].report.status == status
    assert len(rows_of(store, result)) == 2 + (4_000 if status == "compacted" else 0)


def test_files_that_change_in_every_pass_end_the_task(store):
    """Passes are bounded, whatever happens to the files."""
    task = task_of(store, {"1": LONG + LONG}, rules=rules_of(on_changed_file="read"))
    kernels = []

    def new_kernel(plan):
        store.replace["/raw/1"] = 1  # the second start succeeds, but rows of the first were written
        kernels.append(NativeKernel(plan))
        return kernels[-1]

    with pytest.raises(StagingError, match="keep changing"):
        write_bin(store, task, new_kernel)
    assert len(kernels) == MAX_PASSES
    assert staged(store) == []


@pytest.mark.parametrize("first", [GOOD, LONG], ids=["held back", "written"])
def test_a_bin_that_lacks_a_column_stages_no_rows(store, first):
    """But it is read to its end: all keys, reports and rejects are there."""
    task = task_of(store, {"1": first, "2": b'{"late":1}\nbad\n', "3": b'{"later":1,"late":2,"a":3}\n'})
    result = write_bin(store, task, NativeKernel)
    assert result.lacks_columns
    assert [file.new_keys for file in result.files] == [(), ("late",), ("later",)]
    assert result.records == first.count(b"\n") + 2
    assert [name.split("/")[0] for name in staged(store)] == ["rejects"]


def test_output_files_end_where_they_are_large_enough(store):
    """A bin that turns out larger than planned, or a single large file, makes several files of like size."""
    digits = random.Random(7)
    body = b"".join(b'{"a":"%0200x"}\n' % digits.getrandbits(800) for _ in range(140_000))
    plan = plan_of(SCHEMA, held_bytes=MIB // 2, target_file_bytes=4 * MIB)
    for contents in ({"1": body}, {str(at): body[at * 209 * 1000 : (at + 1) * 209 * 1000] for at in range(140)}):
        result = write_bin(store, task_of(store, contents, plan=plan), NativeKernel)
        sizes = [store.stat(uri).size_bytes for uri in result.outputs]
        assert len(sizes) > 5
        assert all(is_right_sized(size, 4 * MIB) for size in sizes), sizes


def test_a_store_that_fails_while_rows_are_written_leaves_no_file(store):
    """The caller gets the error, and no partial object remains."""
    faulty = FaultyStore(store)
    faulty.unavailable_at(1, "writer")
    with pytest.raises(StoreUnavailable):
        write_bin(faulty, task_of(store, {"1": GOOD}), NativeKernel)
    assert staged(store) == []


@pytest.mark.parametrize("reason", ["", "invalid_json"])
def test_a_kernel_that_refuses_a_record_is_found_out(store, reason):
    """A line that inspection accepts cannot silently become a reject."""

    class Wrong(NativeKernel):
        def read(self, block):
            lines, blank_lines, _ = super().read(block)
            return lines, blank_lines, [(0, 0, block.index(b"\n"), reason)]

    with pytest.raises(StagingError, match="refused a record"):
        write_bin(store, task_of(store, {"1": GOOD}), Wrong)


def test_files_that_decode_to_far_too_much_leave_the_rest(store):
    """What was not begun stays deferred, also if another pass has to skip a broken file; all others are complete."""
    bomb = gzip.compress(GOOD + b"\n" * 2_000_000)
    limits = replace(rules_of().limits, task_bytes=len(LONG) + 5_000_000, task_ratio=0)
    files = {"a": bomb, "broken": gzip.compress(LONG)[:-5], "b": bomb, "c": bomb, "d": GOOD, "e": b"bad\n"}
    result = write_bin(store, task_of(store, files, rules=rules_of(limits)), NativeKernel)
    statuses = [file.report.status for file in result.files]
    assert statuses == ["compacted", "unreadable", "compacted", "compacted", "deferred", "deferred"]
    assert len(rows_of(store, result)) == result.records == 6
    assert result.rejects_uri is None
    assert result.files[-1].report.etag == store.stat("/raw/e").etag
