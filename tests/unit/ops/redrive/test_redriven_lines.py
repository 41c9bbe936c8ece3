"""Rejected lines as input files again: the same bytes under the same numbers, and nothing that is still wrong."""

import gzip
from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.documents.records import FileReport, FileStatus, RedrivenInput
from compactor.core.errors import StagingError
from compactor.ndjson.codecs import SNIFF_BYTES, sniff
from compactor.ndjson.files.rejects import RejectSpool, RejectsWriter
from compactor.ndjson.files.scratch import Scratch
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.lines import Limits, Reject, RejectLimits
from compactor.ops.redrive.reject_lines import (
    LinesToRedrive,
    Recheck,
    RedrivenLineNumbers,
    WrittenLines,
    write_lines,
)
from tests.support.memory_store import MemoryStore

LIMITS = Limits(max_line_bytes=12, max_decompressed_bytes=1 << 20)
NOW = Limits(max_line_bytes=30, max_decompressed_bytes=1 << 20)
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
LINES = st.lists(
    st.one_of(st.sampled_from(MAGIC), st.binary(max_size=40), st.just(b'{"id": 1}'), st.just(b' {"id": "longer"}')),
    max_size=8,
)


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


def lines_of(data: bytes) -> dict[int, bytes]:
    """The lines of an input file of redriven lines, by number; blank lines are nothing."""
    assert sniff(data[:SNIFF_BYTES]) == "gzip"
    return {number: line for number, line in enumerate(gzip.decompress(data).split(b"\n"), start=1) if line}


SOURCES = frozenset(f"/w/raw/{name}" for name in "012abc")
WIDER = Recheck(max_line_bytes=30, has_one_parser=True)
FOLDER = "/w/redriven/m1-r1/run/"


def wanted(
    uris: list[str], *, sources: Collection[str] = SOURCES, rejects_of: str = "", **other: Any
) -> LinesToRedrive:
    """Lines of a commit that has compacted these sources, and has the others quarantined."""
    commit = Commit.model_construct(
        manifest_id="m1",
        files=[FileReport(uri=uri, status=FileStatus.COMPACTED) for uri in sources],
        rejects=[StagedFile.model_construct(final=uri) for uri in uris],
        rejects_of=rejects_of,
    )
    return LinesToRedrive(commit, **{"reasons": REASONS, "redriven": RedrivenLineNumbers(), "recheck": WIDER, **other})


def written(store: MemoryStore, uris: list[str], **other: Any) -> WrittenLines:
    return write_lines(store, wanted(uris, **other), FOLDER)


def numbered(content: bytes) -> dict[int, tuple[str, bytes]]:
    """The rejected lines of a file, whole, by number, with their reason."""
    lines: dict[int, tuple[str, bytes]] = {}

    def add(reject: Reject) -> None:
        _, before = lines.get(reject.line_number, ("", b""))
        lines[reject.line_number] = (reject.reason, before + reject.raw)

    inspect_lines([content], LIMITS, on_reject=add)
    return lines


@given(files=st.lists(LINES, min_size=1, max_size=3))
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]]) -> None:
    """A line that would be a row now comes back byte for byte under its number; all others are counted as unchanged."""
    contents = {f"/w/raw/{number}": b"\n".join(lines) for number, lines in enumerate(files)}
    expected: dict[str, dict[int, bytes]] = {}
    unchanged: Counter[str] = Counter()
    for uri, content in contents.items():
        for number, (reason, line) in numbered(content).items():
            if inspect_lines([b"\n" + line + b"\n"], NOW, on_reject=lambda _: None).records:
                expected.setdefault(uri, {})[number] = line
            else:
                unchanged[reason] += 1
    store = MemoryStore()
    if not expected and not unchanged:
        return
    uri = rejects_of(store, tmp_path_factory.mktemp("rejects"), contents)
    result = written(store, [uri])
    assert {each.source_uri: lines_of(store.read(each.uri)) for each in result.inputs} == expected
    assert [each.lines for each in result.inputs] == [len(lines) for lines in expected.values()]
    assert (result.counts.total(), result.unchanged) == (sum(map(len, expected.values())), unchanged)
    redriven = RedrivenLineNumbers(result.inputs)
    for each in result.inputs:
        rejected = {number for number, (why, _) in numbered(contents[each.source_uri]).items() if why == each.reason}
        assert {number for number in rejected if redriven.has(each.source_uri, each.reason, number)} == expected[
            each.source_uri
        ].keys()
    for file in result.files:
        info = store.stat(file.uri)
        assert info is not None
        assert (file.size_bytes, file.etag) == (info.size_bytes, info.etag)
    counted = write_lines(store, wanted([uri]), None)
    assert (counted.counts, counted.unchanged) == (result.counts, result.unchanged)


FITS = b'{"id": "12345"}'
"""Too long for `LIMITS`, and not for `WIDER`."""


def test_only_some_reasons(tmp_path: Path) -> None:
    """Only lines of the reasons that were asked for are written, and files without any leave none."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": b"[1]\n" + FITS + b"\n", "/w/raw/1": b"worse\n"})
    result = written(store, [uri], reasons={"line_too_long"})
    found = [(each.source_uri, each.reason, lines_of(store.read(each.uri))) for each in result.inputs]
    assert found == [("/w/raw/0", "line_too_long", {2: FITS})]
    assert (result.counts, result.unchanged) == ({"line_too_long": 1}, {})


def test_lines_that_were_taken(tmp_path: Path) -> None:
    """Lines of earlier redrives are neither written nor counted."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": b"\n".join([FITS] * 5)})
    numbers = [(1, 2), (4, 4)]
    redriven = RedrivenInput(uri="/w/1", source_uri="/w/raw/0", lines=3, reason="line_too_long", numbers=numbers)
    result = written(store, [uri], redriven=RedrivenLineNumbers([redriven]))
    assert [(each.lines, each.numbers) for each in result.inputs] == [(2, [(3, 5)])]


def test_samples_of_a_quarantined_file(tmp_path: Path) -> None:
    """Samples of too many rejects are left out: their lines come again with the whole file."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": FITS, "/w/raw/1": FITS})
    result = written(store, [uri], sources=frozenset({"/w/raw/1"}))
    assert [(each.source_uri, each.lines) for each in result.inputs] == [("/w/raw/1", 1)]


def test_a_line_far_down(tmp_path: Path) -> None:
    """The blank lines before a line take next to no room."""
    store = MemoryStore()
    uri = rejects_of(store, tmp_path, {"/w/raw/0": b"\n" * 1_000_000 + FITS})
    [file] = written(store, [uri]).files
    assert file.size_bytes is not None
    assert file.size_bytes < 10_000
    assert lines_of(store.read(file.uri)) == {1_000_001: FITS}


@pytest.mark.parametrize(("has_one_parser", "counts"), [(True, {"parsers_disagree": 1}), (False, {})])
def test_lines_on_which_parsers_disagree(tmp_path: Path, has_one_parser: bool, counts: dict[str, int]) -> None:
    """They are rows with an engine that has one parser, and as wrong as before with two."""
    store = MemoryStore()
    path = tmp_path / "r.parquet"
    with RejectsWriter(path) as writer:
        spool = RejectSpool("m1", "/w/raw/a", RejectLimits(), Scratch(1 << 30))
        spool.add(Reject(7, 10, "parsers_disagree", b'{"a":1}'))
        spool.move_to(writer)
    store.upload("/w/r.parquet", path)
    result = written(
        store, ["/w/r.parquet"], reasons={"parsers_disagree"}, recheck=replace(WIDER, has_one_parser=has_one_parser)
    )
    assert result.counts == counts


def test_several_files_of_rejects(tmp_path: Path) -> None:
    """The rejects of a manifest may be in several files."""
    store = MemoryStore()
    uris = [rejects_of(store, tmp_path, {f"/w/raw/{name}": FITS}, name) for name in ("a", "b")]
    assert [each.source_uri for each in written(store, uris).inputs] == ["/w/raw/a", "/w/raw/b"]


def test_order_that_cannot_be_trusted(tmp_path: Path) -> None:
    """Rejects of one file in two places, or out of order, are an error."""
    store = MemoryStore()
    uris = [rejects_of(store, tmp_path, {"/w/raw/a": b"bad\n", f"/w/raw/{name}": b"bad\n"}, name) for name in "bc"]
    with pytest.raises(StagingError, match="/w/raw/a are in two places"):
        written(store, uris)
    assert written(store, uris, rejects_of="m0").unchanged == {"invalid_json": 4}
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
