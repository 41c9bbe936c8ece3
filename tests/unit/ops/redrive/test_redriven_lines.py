"""Rejected lines as input files again: the same bytes, whatever they are, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.memory.store import MemoryStore
from compactor.core.errors import StagingError
from compactor.ndjson.codecs import SNIFF_BYTES, sniff
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.lines import Limits, Reject, RejectLimits
from compactor.ndjson.rejects import RejectSpool, RejectsWriter
from compactor.ndjson.scratch import Scratch
from compactor.ops.redrive.lines import WrittenLines, write_lines

LIMITS = Limits(max_line_bytes=12, max_decompressed_bytes=1 << 20)
REASONS = frozenset({"invalid_utf8", "invalid_json", "not_an_object", "line_too_long", "too_deep"})
MAGIC = [
    b"\xef\xbb\xbf{}",
    b"\x1f\x8b\x08",
    b"BZh91AY&SY",
    b"(\xb5/\xfd",
    b"\xfd7zXZ\x00",
    b"x\x9c\x03\x00",
    b"\xff\xfe",
]
LINES = st.lists(st.one_of(st.sampled_from(MAGIC), st.binary(max_size=40), st.just(b'{"id": 1}')), max_size=8)


def rejects_of(store: MemoryStore, folder: Path, contents: dict[str, bytes], name: str = "r") -> str:
    """The Parquet file of the rejects of some files."""
    path = folder / f"{name}.parquet"
    with RejectsWriter(path) as writer:
        for uri, content in contents.items():
            spool = RejectSpool("m1", uri, RejectLimits(), Scratch(1 << 30))
            inspect_lines([content], LIMITS, on_reject=spool.add)
            spool.move_to(writer)
    store.upload(f"/w/{name}.parquet", path)
    return f"/w/{name}.parquet"


def rejected_lines(content: bytes) -> list[bytes]:
    """The rejected lines of a file, whole, in their order."""
    lines: dict[int, bytes] = {}

    def add(reject: Reject) -> None:
        lines[reject.line_number] = lines.get(reject.line_number, b"") + reject.raw

    inspect_lines([content], LIMITS, on_reject=add)
    return list(lines.values())


def lines_of(data: bytes) -> list[bytes]:
    """What a job finds in an input file, records and rejects alike; blank lines are nothing."""
    assert sniff(data[:SNIFF_BYTES]) == "none"
    found = inspect_lines([data], LIMITS, on_reject=lambda _: None)
    assert not found.has_bom
    return [line for line in data.split(b"\n") if line]


SOURCES = frozenset(f"/w/raw/{name}" for name in "012abc")


def written(
    store: MemoryStore, uris: list[str], reasons: frozenset[str] = REASONS, sources: frozenset[str] = SOURCES
) -> WrittenLines:
    return write_lines(store, uris, sources, reasons, "/w/redriven/m1-r1/run/")


@given(files=st.lists(LINES, min_size=1, max_size=3))
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]) -> None:
    """Whatever was rejected comes back byte for byte, in its order, one file for each source, long lines whole."""
    contents = {f"/w/raw/{number}": b"\n".join(lines) for number, lines in enumerate(files)}
    expected = {uri: lines for uri, content in contents.items() if (lines := rejected_lines(content))}
    store = MemoryStore()
    if not expected:
        return
    uri = rejects_of(store, tmp_path_factory.mktemp("rejects"), contents)
    result = written(store, [uri])
    assert {each.source_uri: lines_of(store.read(each.uri)) for each in result.inputs} == expected
    assert [each.lines for each in result.inputs] == [len(lines) for lines in expected.values()]
    assert result.counts.total() == sum(map(len, expected.values()))
    for file in result.files:
        info = store.stat(file.uri)
        assert info is not None
        assert (file.size_bytes, file.etag) == (info.size_bytes, info.etag)


def test_only_some_reasons(tmp_path: Path) -> None:
    """Only lines of the reasons that were asked for are written, and files without any leave none."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": b"[1]\nbad\n", "/w/raw/1": b"worse\n"})
    result = written(store, [uri], frozenset({"not_an_object"}))
    assert [(each.source_uri, store.read(each.uri)) for each in result.inputs] == [("/w/raw/0", b"\n[1]\n")]
    assert result.counts == {"not_an_object": 1}


def test_samples_of_a_quarantined_file(tmp_path: Path) -> None:
    """Samples of too many rejects are left out: their lines come again with the whole file."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": b"bad\n", "/w/raw/1": b"worse\n"})
    result = written(store, [uri], sources=frozenset({"/w/raw/1"}))
    assert [(each.source_uri, each.lines) for each in result.inputs] == [("/w/raw/1", 1)]


def test_several_files_of_rejects(tmp_path: Path) -> None:
    """The rejects of a manifest may be in several files."""
    store = MemoryStore()
    uris = [rejects_of(store, tmp_path, {f"/w/raw/{name}": b"bad\n"}, name) for name in ("a", "b")]
    assert [each.source_uri for each in written(store, uris).inputs] == ["/w/raw/a", "/w/raw/b"]


def test_order_that_cannot_be_trusted(tmp_path: Path) -> None:
    """Rejects of one file in two places, or out of order, are an error."""
    store = MemoryStore()
    uris = [rejects_of(store, tmp_path, {"/w/raw/a": b"bad\n", f"/w/raw/{name}": b"bad\n"}, name) for name in "bc"]
    with pytest.raises(StagingError, match="/w/raw/a are in two places"):
        written(store, uris)
    path = tmp_path / "twisted.parquet"
    with RejectsWriter(path) as writer:
        spool = RejectSpool("m1", "/w/raw/a", RejectLimits(), Scratch(1 << 30))
        for line_number in (2, 1):
            spool.add(Reject(line_number, 10 * line_number, "invalid_json", b"bad"))
        spool.move_to(writer)
    store.upload("/w/twisted.parquet", path)
    with pytest.raises(StagingError, match="line 1, byte 10 comes after line 2, byte 20"):
        written(store, ["/w/twisted.parquet"])


def test_damaged_rejects() -> None:
    """The error for rejects that are gone or truncated names their file."""
    store = MemoryStore()
    store.put("/w/cut.parquet", b"PAR1")
    for uri in ("/w/gone.parquet", "/w/cut.parquet"):
        with pytest.raises(StagingError, match=uri):
            written(store, [uri])
