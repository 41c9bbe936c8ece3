import bz2
import errno
import gzip
import io
import threading
import time
import tracemalloc
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from blake3 import blake3

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, CredentialsRefused, LinkRefused, ScratchFull, StoreUnavailable
from compactor.core.layout import base_name
from compactor.engines.spark.input_files import InspectTask, InspectTaskResult, inspect_files
from compactor.ndjson import grok
from compactor.ndjson.files import object_reading
from compactor.ndjson.files.object_reading import FILES_AHEAD, MOST_PAUSED_SECONDS, RANGE_BYTES, DiskWaits
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.ndjson.grok import Decoded
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import HONEST_RATIO, Limits, RejectLimits
from tests.support.fakes import FaultyStore
from tests.support.memory_store import MemoryStore
from tests.support.native_rows import ALL_LINES, rules_of

STAGING = "s3://state/staging/m-1/1/"
LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 28)
GOOD = b'{"a":1}\n{"b":"x"}\n'
MIXED = b'{"a":1}\nnot json\n\n{"b":"x"}'


class Meddling(MemoryStore):
    """A store that replaces or deletes a file right before some of the reads."""

    def __init__(self):
        super().__init__()
        self.before_read = {}
        self.reads = Counter()

    def read_range(self, uri, start, length, *, etag=None):
        self.reads[uri] += 1
        self.before_read.get((uri, self.reads[uri]), lambda: None)()
        return super().read_range(uri, start, length, etag=etag)


def named(store, uri, *, by="etag") -> ManifestFile:
    found = store.stat(uri)
    return ManifestFile(
        uri=uri, etag=found.etag if by == "etag" else None, size_bytes=found.size_bytes if by == "size" else None
    )


def run(
    store, *files, on_changed_file="skip", limits=LIMITS, refused=None, number=7, discovery="full", formats=ALL_LINES
) -> InspectTaskResult:
    numbered = tuple((index, named(store, file) if isinstance(file, str) else file) for index, file in enumerate(files))
    return inspect_files(
        store,
        InspectTask(
            "m-1",
            numbered,
            STAGING,
            rules_of(limits, on_changed_file=on_changed_file, formats=formats),
            refused or {},
            number,
            discovery,
        ),
    )


def put(store, **contents) -> list[str]:
    uris = [f"s3://raw/{name}" for name in contents]
    for uri, data in zip(uris, contents.values(), strict=True):
        store.put(uri, data)
    return uris


def staged(store) -> list[str]:
    return [info.uri for info in store.list(STAGING)]


def rejects(store, result) -> list[dict]:
    table = pq.read_table(io.BytesIO(store.read(result.rejects_uri)))
    assert table.schema.equals(REJECTS_SCHEMA)
    return table.to_pylist()


@pytest.fixture
def store():
    return Meddling()


def test_a_clean_file_is_read_where_it_is(store):
    """Nothing is copied that Spark can read; a file that fits one range costs one request."""
    (uri,) = put(store, clean=GOOD)
    result = run(store, uri)
    (file,) = result.files
    assert (file.index, file.readable_uri, file.new_keys) == (0, uri, ("a", "b"))
    assert file.report.model_dump() == {
        "uri": uri,
        "status": FileStatus.COMPACTED,
        "detail": "",
        "size_bytes": len(GOOD),
        "etag": store.stat(uri).etag,
        "superseded": 0,
        "digest": "",  # of local files only
        "codec": "none",
        "format": "ndjson",
        "record_path": "",
        "kept_keys": (),
        "decoded_bytes": len(GOOD),
        "lines": 2,
        "blank_lines": 0,
        "hole_bytes": 0,
        "records": 2,
        "rejected_lines": 0,
        "rejects": {},
        "unkept_rejects": {},
        "reject_rows": 0,
        "source_uri": "",
        "rejected_as": "",
        "path_columns": {},
        "range": None,
        "follows": "",
        "erased_rejects": 0,
    }
    assert result.rejects_uri is None
    assert staged(store) == []
    assert store.reads[uri] == 1


def test_rejects_are_staged_and_the_rest_repaired(store):
    """Rejected lines of all files go to one Parquet file with their exact bytes; the good lines go to a copy each."""
    uris = put(store, one=MIXED, two=GOOD, three=b"\xff\n" + GOOD)
    result = run(store, *uris)
    assert rejects(store, result) == [
        {
            "manifest_id": "m-1",
            "source_uri": uri,
            "line_number": line_number,
            "byte_offset": byte_offset,
            "reason": reason,
            "raw": raw,
            "kept": None,
        }
        for uri, line_number, byte_offset, reason, raw in [
            (uris[0], 2, 8, "invalid_json", b"not json"),
            (uris[2], 1, 0, "invalid_utf8", b"\xff"),
        ]
    ]
    assert [file.readable_uri for file in result.files] == [
        STAGING + "repaired/000000.ndjson",
        uris[1],
        STAGING + "repaired/000002.ndjson",
    ]
    assert store.read(STAGING + "repaired/000000.ndjson") == GOOD
    assert store.read(STAGING + "repaired/000002.ndjson") == GOOD
    assert result.rejects_uri == STAGING + "rejects/000007.parquet"
    report = result.files[0].report
    assert (report.lines, report.records, report.blank_lines, report.rejected_lines) == (4, 2, 1, 1)
    assert report.rejects == {"invalid_json": 1}


@pytest.mark.parametrize(
    ("name", "data", "copied", "codec"),
    [
        ("plain.gz", GOOD, True, "none"),
        ("_hidden", GOOD, True, "none"),
        ("a:b", GOOD, True, "none"),
        ("bom", b"\xef\xbb\xbf" + GOOD, True, "none"),
        ("file.gz", gzip.compress(GOOD, mtime=0), False, "gzip"),
        ("file.json", gzip.compress(GOOD, mtime=0), True, "gzip"),
        ("file.bz2", bz2.compress(GOOD), True, "bzip2"),
        ("file.zz", zlib.compress(GOOD), True, "zlib"),
        ("blank", b"\n" + GOOD + b"\n", False, "none"),
    ],
)
def test_spark_gets_a_copy_of_what_it_would_misread(store, name, data, copied, codec):
    """Spark gets plain copies of encoded, marked and oddly named files, and the originals of all others."""
    uri = f"s3://raw/{name}"
    store.put(uri, data)
    (file,) = run(store, uri).files
    assert file.readable_uri == (STAGING + "repaired/000000.ndjson" if copied else uri)
    assert (file.report.codec, file.report.records, file.report.size_bytes) == (codec, 2, len(data))
    if copied:
        assert store.read(file.readable_uri) == GOOD


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\xef\xbb\xbf", b"[]\n1", gzip.compress(b"", mtime=0)])
def test_a_file_without_records_is_reported_and_not_read_again(store, data):
    """A file of only blanks and rejects has a report, and nothing for Spark to read."""
    (uri,) = put(store, none=data)
    result = run(store, uri)
    (file,) = result.files
    assert (file.report.status, file.report.records, file.readable_uri) == (FileStatus.COMPACTED, 0, None)
    assert [uri for uri in staged(store) if "repaired" in uri] == []


def test_refused_lines_are_rejected(store):
    """A line that the engine could not read is rejected, and its file gets a copy without it."""
    uris = put(store, one=GOOD, two=GOOD)
    result = run(store, *uris, refused={1: frozenset({b'{"b":"x"}'})})
    assert [(row["source_uri"], row["reason"], row["raw"]) for row in rejects(store, result)] == [
        (uris[1], "parsers_disagree", b'{"b":"x"}')
    ]
    assert result.files[0].readable_uri == uris[0]
    assert store.read(result.files[1].readable_uri) == b'{"a":1}\n'


def test_refused_records_are_records_of_some_parser(store):
    """A file that has such lines is no file of another kind, whatever its first reject begins with."""
    framed = b"\x00\x00\x00\x00\x01{}"
    other, lines = put(store, other=framed, lines=framed + b'\n{"b":"x"}\n')
    result = run(store, other, lines, refused={1: frozenset({b'{"b":"x"}'})})
    assert [each.report.status for each in result.files] == [FileStatus.NOT_NDJSON, FileStatus.COMPACTED]
    assert result.files[1].report.rejects == {"invalid_json": 1, "parsers_disagree": 1}


def test_a_file_with_refused_lines_always_gets_a_copy(store):
    """Also where none of them is found: the engine tripped over the original."""
    (uri,) = put(store, one=GOOD)
    (file,) = run(store, uri, refused={0: frozenset({b'{"c":1}'})}).files
    assert file.readable_uri == STAGING + "repaired/000000.ndjson"
    assert store.read(file.readable_uri) == GOOD


def test_a_missing_file_is_reported(store):
    """A file that is not there stops no other."""
    (uri,) = put(store, there=GOOD)
    for on_changed_file in ("skip", "read"):
        gone = [ManifestFile(uri="s3://raw/gone"), ManifestFile(uri="s3://raw/gone-2", etag="1")]
        result = run(store, *gone, uri, on_changed_file=on_changed_file)
        assert [file.report.status for file in result.files] == ["missing", "missing", "compacted"]
        assert result.files[0].report.detail == "no such object; expected the file from the manifest"


@pytest.mark.parametrize("by", ["etag", "size"])
def test_a_changed_file_is_skipped_or_read(store, by):
    """A file with another version than the manifest names is quarantined, or read as it is, as the setting says."""
    (uri,) = put(store, file=b"{}")
    file = named(store, uri, by=by)
    store.put(uri, GOOD)
    (skipped,) = run(store, file).files
    assert (skipped.report.status, skipped.readable_uri) == ("changed", None)
    assert "expected" in skipped.report.detail
    (read,) = run(store, file, on_changed_file="read").files
    assert (read.report.status, read.report.records, read.report.etag) == ("compacted", 2, store.stat(uri).etag)


LARGE = b'{"a":"' + b"x" * 4000 + b'"}\nbad\n'
LARGE *= 2 * RANGE_BYTES // len(LARGE) + 1


@pytest.mark.parametrize("at_read", [2, 3, 4, 5])
@pytest.mark.parametrize(("on_changed_file", "status"), [("skip", "changed"), ("read", "compacted")])
def test_a_file_replaced_while_it_is_read_leaves_nothing_of_its_old_self(store, at_read, on_changed_file, status):
    """In the middle of either pass: the whole file is skipped, or begun again; versions are never mixed."""
    uris = put(store, before=MIXED, large=LARGE, after=MIXED)
    store.before_read[uris[1], at_read] = lambda: store.put(uris[1], b"bad too\n" + GOOD)
    result = run(store, *uris, on_changed_file=on_changed_file)
    assert [file.report.status for file in result.files] == ["compacted", status, "compacted"]
    raws = [row["raw"] for row in rejects(store, result)]
    assert raws == [b"not json", *([b"bad too"] if status == "compacted" else []), b"not json"]
    assert (STAGING + "repaired/000001.ndjson" in staged(store)) == (status == "compacted")


def test_a_file_that_is_always_replaced_is_given_up(store):
    """Beginning again ends after a few times, with the file reported as changed."""
    (uri,) = put(store, large=LARGE)
    for number in range(2, 100):
        store.before_read[uri, number] = lambda: store.put(uri, LARGE)
    (file,) = run(store, uri, on_changed_file="read").files
    assert (file.report.status, file.readable_uri, staged(store)) == ("changed", None, [])
    assert file.report.detail.startswith("replaced while being read")


@pytest.mark.parametrize(
    ("data", "limits", "status"),
    [
        (gzip.compress(b"bad\n" * 50_000 + GOOD, mtime=0)[:-4], LIMITS, "unreadable"),
        (gzip.compress(b"bad\n" + GOOD, mtime=0) + b"garbage", LIMITS, "unreadable"),
        (b"bad\n" + GOOD * 99_999, Limits(100, 1_000_000), "too_large"),
    ],
)
def test_a_file_that_cannot_be_read_to_its_end_leaves_nothing(store, data, limits, status):
    """Rejects and copies of such a file are withdrawn; its neighbours are not touched."""
    uris = put(store, before=MIXED, broken=data, after=MIXED)
    result = run(store, *uris, limits=limits)
    broken = result.files[1].report
    assert [file.report.status for file in result.files] == ["compacted", status, "compacted"]
    assert (broken.size_bytes, broken.etag, broken.lines) == (len(data), store.stat(uris[1]).etag, 0)
    assert broken.detail
    assert {row["source_uri"] for row in rejects(store, result)} == {uris[0], uris[2]}
    assert [uri for uri in staged(store) if "000001" in uri] == []


def test_over_long_lines_are_kept_whole_in_pieces(store):
    """The pieces of a line that is too long join to its bytes, and count as one line."""
    line = bytes(range(1, 10)) * 1000
    (uri,) = put(store, long=GOOD + line + b"\n" + GOOD)
    result = run(store, uri, limits=Limits(4000, 1 << 20))
    rows = rejects(store, result)
    assert b"".join(row["raw"] for row in rows) == line
    assert [(row["line_number"], row["byte_offset"]) for row in rows] == [(3, 18), (3, 4018), (3, 8018)]
    assert (result.files[0].report.rejected_lines, result.files[0].report.reject_rows) == (1, 3)


SMALL_RANGE = 1 << 20


@pytest.mark.parametrize("size", [SMALL_RANGE - 1, SMALL_RANGE, SMALL_RANGE + 1, 3 * SMALL_RANGE])
@pytest.mark.parametrize(
    ("uri", "name"), [("s3://raw/file.ndjson", "RANGE_BYTES"), ("file:///raw/file.ndjson", "LOCAL_RANGE_BYTES")]
)
def test_files_of_any_size_are_read_whole(store, size, uri, name, monkeypatch):
    """Files at the edges of a range lose nothing, and cost no more reads than they have ranges."""
    monkeypatch.setattr(object_reading, name, SMALL_RANGE)
    data = (b'{"a":1}\n' * (size // 8 + 1))[:size]
    store.put(uri, data)
    (file,) = run(store, uri).files
    report = file.report
    assert (report.size_bytes, report.decoded_bytes) == (size, size)
    assert report.records + report.rejected_lines == report.lines == -(-size // 8)
    passes = 2 if report.rejected_lines else 1
    ranges = -(-size // SMALL_RANGE)
    assert store.reads[uri] == ranges + (passes - 1) * (ranges - 1)


@pytest.mark.parametrize(("uri", "reads"), [("s3://raw/file.ndjson", 1), ("file:///raw/file.ndjson", 3)])
def test_further_ranges_of_a_file_on_disk_are_read_ahead(store, uri, reads, monkeypatch):
    """On S3 they would be requests for nothing if the first range shows that the file is of another kind."""
    monkeypatch.setattr(object_reading, "range_bytes", lambda _: 10)
    store.put(uri, bytes(range(25)))
    with ThreadPoolExecutor(1) as pool:
        opened = object_reading.open_file(store, ManifestFile(uri=uri), any_version=True)
        pieces = object_reading.read_ranges(store, opened, pool)
        first = next(pieces)
        pool.submit(len, "").result()  # behind what was begun
        assert store.reads[uri] == reads
        assert first + b"".join(pieces) == bytes(range(25))


@pytest.mark.parametrize(
    ("folder", "has_waited", "is_ahead"),
    [("file:///raw/", False, False), ("file:///raw/", True, True), ("s3://raw/", False, True)],
)
def test_files_are_read_ahead_where_reads_wait(store, folder, has_waited, is_ahead, monkeypatch):
    """As those of S3 always do; files that the system has in memory are read by the task itself."""
    monkeypatch.setattr(DiskWaits, "has_waited", lambda _: has_waited)
    uris = [f"{folder}{number}" for number in range(5)]
    readers = []
    for uri in uris:
        store.put(uri, GOOD)
        store.before_read[uri, 1] = lambda: readers.append(threading.current_thread())
    assert [file.report.records for file in run(store, *uris).files] == [2] * 5
    assert len(readers) == 5
    assert (threading.current_thread() not in readers) == is_ahead
    assert (set(readers) == {threading.current_thread()}) != is_ahead


@pytest.mark.parametrize("size", [0, 1, SMALL_RANGE - 1, SMALL_RANGE, SMALL_RANGE + 1, 3 * SMALL_RANGE + 5])
@pytest.mark.parametrize("has_waited", [False, True])
def test_local_files_are_reported_with_the_digest_of_their_bytes(store, size, has_waited, monkeypatch):
    """Of all of their pieces, in whichever thread they are read; by it a copy is known to be the same."""
    monkeypatch.setattr(object_reading, "LOCAL_RANGE_BYTES", SMALL_RANGE)
    monkeypatch.setattr(DiskWaits, "has_waited", lambda _: has_waited)
    data = (b'{"a":1}\n' * (size // 8 + 1))[:size]
    store.put("file:///raw/one", data)
    store.put("file:///raw/two", data)
    for file in run(store, "file:///raw/one", "file:///raw/two").files:
        assert file.report.digest == f"b3-{blake3(data).hexdigest()[:32]}"


def test_passing_trouble_of_the_store_is_passed_on(store):
    """A throttled store fails the task, so that it is tried again: the file is not to blame."""
    uris = put(store, one=GOOD, two=LARGE)

    def throttle():
        raise StoreUnavailable("slow down")

    store.before_read[uris[1], 2] = throttle
    with pytest.raises(StoreUnavailable, match="slow down"):
        run(store, *uris)


def test_memory_does_not_grow_with_files(store, monkeypatch):
    """A large encoded file, all of it rejects, is inspected, spooled and copied in bounded memory."""
    monkeypatch.setattr(object_reading, "RANGE_BYTES", 1 << 20)
    line = b"x" * 4095 + b"\n"
    uris = put(store, bomb=gzip.compress((line + GOOD) * 12_000, 1), plain=(line + GOOD) * 5_000)
    limits = replace(LIMITS, rejects=RejectLimits(max_bytes=1 << 30))
    tracemalloc.start()
    try:
        result = run(store, *uris, limits=limits)
        uploaded = sum(info.size_bytes for info in store.list(STAGING))
        assert tracemalloc.get_traced_memory()[1] - uploaded < 40 << 20
    finally:
        tracemalloc.stop()
    assert [file.report.rejected_lines for file in result.files] == [12_000, 5_000]


def test_declared_discovery_leaves_the_lines_to_the_engine(store):
    """Without full discovery, Spark gets the original, and no keys are found; lines of other values are rejected."""
    uris = put(store, file=b'{"a":1}\n\n{broken\n{}\n', mixed=b'{"a":1}\n[{},{}]\n')
    file, mixed = run(store, *uris, discovery="declared").files
    assert (file.readable_uri, file.new_keys, file.report.records, file.report.blank_lines) == (uris[0], (), 3, 1)
    assert (mixed.report.records, mixed.report.rejects) == (1, {"not_an_object": 1})
    assert store.read(mixed.readable_uri) == b'{"a":1}\n'


def test_a_full_scratch_disk_is_passing_trouble(monkeypatch, tmp_path):
    """If a task cannot write its scratch files, the manifest is not blamed."""
    store = MemoryStore()
    files = put(store, **{"a.ndjson": GOOD})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(StoreUnavailable, match="scratch files"):
        run(store, *files)


def test_a_scratch_disk_without_room_has_an_error_of_its_own(store, monkeypatch):
    """It counts against a manifest that was alone; the trouble of other disks does not."""
    files = put(store, mixed=MIXED)

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("compactor.ndjson.files.rejects.RejectsWriter.write", refuse)
    with pytest.raises(ScratchFull, match="No space left on device"):
        run(store, *files)


@pytest.mark.parametrize("content", [b"bad\n" + GOOD * 99_999, b"%s\n" % (b"x" * 99_999) * 20], ids=["copy", "rejects"])
def test_a_file_that_needs_too_much_scratch_is_quarantined(store, content):
    """Its neighbours are inspected, before and after it, and its own scratch files are gone by then."""
    small = b"bad\n" + GOOD * 10_000
    uris = put(store, a=small, big=content, c=small, d=small, e=small, f=small, g=small, h=small)
    result = run(store, *uris, limits=replace(LIMITS, max_scratch_bytes=1 << 20))
    statuses = [file.report.status for file in result.files]
    assert statuses == [FileStatus.COMPACTED, FileStatus.TOO_MUCH_SCRATCH, *[FileStatus.COMPACTED] * 6]
    assert "at most 1,048,576, by max_decompressed_bytes" in result.files[1].report.detail
    assert [row["source_uri"] for row in rejects(store, result)] == [uris[0], *uris[2:]]
    assert not any("000001" in uri for uri in staged(store))


def test_a_file_with_too_many_rejects_leaves_samples(store):
    """It is read only up to there; the first rejects are kept as samples, and no line counts as done."""
    uris = put(store, bad=b"bad\n" * 3_000 + GOOD, good=MIXED)
    result = run(store, *uris, limits=replace(LIMITS, rejects=RejectLimits(max_lines=2_000)))
    bad, good = (file.report for file in result.files)
    assert (bad.status, bad.reject_rows, bad.rejected_lines, bad.lines) == (FileStatus.TOO_MANY_REJECTS, 1_000, 0, 0)
    assert bad.detail.startswith("line 2,001: 2,001 lines of 6,003 bytes rejected so far (invalid_json)")
    assert (good.status, good.rejected_lines, good.reject_rows) == (FileStatus.COMPACTED, 1, 1)
    rows = rejects(store, result)
    assert [row["line_number"] for row in rows] == [*range(1, 1_001), 2]
    assert result.files[0].readable_uri is None


def test_rows_of_a_file_with_too_many_rejects_are_kept_if_set(store):
    """All rejected lines are counted, and the first of them kept; lines in pieces are kept whole or not at all."""
    content = b"".join([b"x" * 25 + b"\n"] * 3 + [b'{"a":1}\nbad\n'] * 5)
    uris = put(store, bad=content, good=MIXED)
    limits = replace(LIMITS, max_line_bytes=10, rejects=RejectLimits(max_bytes=60, on_excess="keep_rows"))
    bad, good = (file.report for file in run(store, *uris, limits=limits).files)
    assert (bad.lines, bad.records, bad.rejected_lines) == (13, 5, 8)
    assert bad.rejects == {"line_too_long": 3, "invalid_json": 5}
    assert bad.unkept_rejects == {"line_too_long": 1, "invalid_json": 5}
    assert (bad.reject_rows, good.unkept_rejects) == (6, {})


def test_lines_that_only_spark_refuses_are_never_only_counted(store):
    """No other reading of the input would find them again, so that without their bytes the file is quarantined."""
    uris = put(store, late=b'bad\n{"a":1}\n{"b":2}\n', early=b'{"b":2}\n{"a":1}\nbad\n')
    limits = replace(LIMITS, rejects=RejectLimits(max_lines=1, on_excess="keep_rows"))
    refused = dict.fromkeys((0, 1), frozenset({b'{"b":2}'}))
    late, early = (file.report for file in run(store, *uris, limits=limits, refused=refused).files)
    assert (late.status, late.records) == (FileStatus.TOO_MANY_REJECTS, 0)
    assert late.detail.startswith("line 3: 2 lines of 10 bytes rejected so far (parsers_disagree)")
    assert (early.status, early.records, early.unkept_rejects) == (FileStatus.COMPACTED, 1, {"invalid_json": 1})


class Refusing(FaultyStore):
    """Refuses the first reads of each object whose name says so."""

    def __init__(self, store, error):
        super().__init__(store)
        self.tries = Counter()
        self._error = error

    def read_range(self, uri, start, length, *, etag=None):
        self.tries[uri] += 1
        if self.tries[uri] <= int(base_name(uri).partition("-")[2] or 0):
            raise self._error(f"{uri}: refused")
        return super().read_range(uri, start, length, etag=etag)


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that were made, in seconds; none of them takes time."""
    made = []
    monkeypatch.setattr("compactor.ndjson.files.object_reading.time", SimpleNamespace(sleep=made.append))
    return made


def test_a_refusal_that_does_not_last_is_no_trouble(store, pauses):
    """A file is only quarantined if the store refuses it again and again; the others do not wait for it to be read."""
    uris = put(store, **{"soon-1": GOOD, "late-3": GOOD, "never-99": GOOD, "good": GOOD})
    refusing = Refusing(store, AccessError)
    files = run(refusing, *uris).files
    assert [file.report.status for file in files] == ["compacted", "compacted", "forbidden", "compacted"]
    assert refusing.tries == {uris[0]: 2, uris[1]: 4, uris[2]: 4, uris[3]: 1}
    assert sorted(pauses) == sorted([0.2, *[0.2, 0.4, 0.8] * 2])


def test_many_refusals_take_no_longer_than_some(store, pauses):
    """The pauses of a task are bounded, however many of its files are refused."""
    uris = put(store, **{f"{number}-99": GOOD for number in range(40)}, good=GOOD)
    files = run(Refusing(store, AccessError), *uris).files
    assert [file.report.status for file in files] == ["forbidden"] * 40 + ["compacted"]
    assert 4 < sum(pauses) <= MOST_PAUSED_SECONDS


def test_links_that_lead_out_are_refused_at_once(store, pauses):
    """Another try would not help."""
    uris = put(store, **{"link-1": GOOD})
    assert [file.report.status for file in run(Refusing(store, LinkRefused), *uris).files] == ["forbidden"]
    assert pauses == []


def test_no_file_is_to_blame_for_credentials(store, pauses):
    """Where they have expired, the attempt fails, and no file is quarantined."""
    uris = put(store, **{"good": GOOD, "refused-9": GOOD})
    with pytest.raises(StoreUnavailable, match="refused-9: refused"):
        run(Refusing(store, CredentialsRefused), *uris)
    assert pauses == []


def test_a_file_whose_folders_give_columns_gets_a_copy(store):
    """The copy has the values of the path in each line; rejects, keys and refused lines are those of the file."""
    [uri] = put(store, x=b'{"a":1}\nbad\n{"b":2}\n{}')
    file = named(store, uri).model_copy(update={"path_columns": {"year": "2026"}})
    result = run(store, file)
    [read] = result.files
    assert (read.new_keys, read.has_further_keys, read.report.path_columns) == (
        ("year", "a", "b"),
        False,
        file.path_columns,
    )
    assert read.readable_uri == f"{STAGING}repaired/000000.ndjson"
    assert store.read(read.readable_uri) == b'{"year":"2026","a":1}\n{"year":"2026","b":2}\n{"year":"2026"}\n'
    assert [row["raw"] for row in rejects(store, result)] == [b"bad"]
    again = run(store, file, refused={0: frozenset({b'{"year":"2026","b":2}'})})
    assert again.files[0].report.rejects == {"invalid_json": 1, "parsers_disagree": 1}
    assert [row["raw"] for row in rejects(store, again)] == [b"bad", b'{"b":2}']


def test_which_keys_with_a_column_the_records_have(store):
    """Those of all files of the task, and of the paths of files with records."""
    first, second, empty = put(store, x=b'{"a":1}', y=b'{"b":1,"new":2}', z=b"bad")
    files = [
        named(store, first),
        named(store, second).model_copy(update={"path_columns": {"year": "2026", "other": "1"}}),
        named(store, empty).model_copy(update={"path_columns": {"month": "01"}}),
    ]
    task = InspectTask("m-1", tuple(enumerate(files)), STAGING, rules_of(LIMITS), {}, 7)
    result = inspect_files(store, replace(task, known_keys=frozenset(["a", "b", "year", "month", "unused"])))
    assert result.present_keys == {"a", "b", "year"}


@pytest.mark.parametrize(("ratio", "read"), [(0, 1), (100, 2), (1100, 20)])
def test_a_task_begins_no_file_once_it_has_decoded_too_much(store, ratio, read):
    """The budget grows with the stored bytes; a deferred file leaves nothing, and is not even opened if it is late."""
    bomb = gzip.compress(GOOD + b"\n" * 100_000 + b"bad")
    uris = put(store, **{f"{number:02}": bomb for number in range(20)})
    result = run(store, *uris, limits=replace(LIMITS, task_bytes=95_000, task_ratio=ratio))
    statuses = [file.report.status for file in result.files]
    assert statuses == ["compacted"] * read + ["deferred"] * (20 - read)
    assert len(rejects(store, result)) == read
    assert len(store.reads) <= read + FILES_AHEAD


class Slow:
    """A decoder of lines that are JSON; each of its calls takes some CPU time."""

    rules = None
    seconds = 0.02

    def open(self):
        return self

    def decode(self, block, start):
        until = time.thread_time() + self.seconds
        while time.thread_time() < until:
            pass
        return Decoded(len(block), block.count(b"\n", start), block[start:], [])


def test_a_task_begins_no_file_once_matching_took_too_long(store, monkeypatch):
    """Each file alone may take as long as it does."""
    monkeypatch.setattr(grok, "FREE_SECONDS", 2.5 * Slow.seconds)
    uris = put(store, **{f"{number:02}": GOOD for number in range(20)})
    result = run(store, *uris, limits=replace(LIMITS, task_bytes=1 << 20), formats=Formats("grok", grok=Slow()))
    statuses = [file.report.status for file in result.files]
    read = statuses.count("compacted")
    assert 1 <= read <= 3
    assert statuses == ["compacted"] * read + ["deferred"] * (20 - read)
    assert "CPU seconds" in result.files[-1].report.detail


def test_an_honest_task_is_never_cut_short(store):
    """Files that decode to many times the limit of a file are all read, if none decodes to far more than it should."""
    lines = b"".join(
        b'{"id":%d,"at":"2026-01-02T03:04:05Z","level":"info","text":"started"}\n' % n for n in range(3000)
    )
    data = gzip.compress(lines, 9)
    assert 8 < len(lines) / len(data) < HONEST_RATIO / 2
    uris = put(store, **{f"f{number}": data for number in range(20)})
    result = run(store, *uris, limits=replace(LIMITS, task_bytes=1))
    assert {file.report.status for file in result.files} == {"compacted"}


def test_a_file_that_cannot_be_read_counts(store):
    """What a quarantined file decoded to is spent as well."""
    uris = put(store, broken=gzip.compress(b"\n" * 1_000_000)[:-5], good=GOOD)
    result = run(store, *uris, limits=replace(LIMITS, task_bytes=10_000))
    assert [file.report.status for file in result.files] == ["unreadable", "deferred"]
