"""Promises of recognition: each kind of file is named by its content, and NDJSON is never taken for another kind."""

import gzip
import io
import json
import tarfile
import zipfile
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import orc

from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError
from compactor.core.inputs.record_place import DOCUMENTS
from compactor.ndjson.files.rejects import RejectSpool
from compactor.ndjson.files.scratch import Scratch
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.kinds.binary_kinds import registry_kind
from compactor.ndjson.kinds.formats import LONG_LOOK_BYTES, LOOK_BYTES, Formats, recognised
from compactor.ndjson.lines import Limits, Reject, RejectLimits

UUID = bytes(range(16))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\0\0\0\x01\0data", "schema registry values (magic byte 0, schema 256)"),
        (b"\0\0\0\0\rdata", "schema registry values (magic byte 0)"),  # a line feed stood there, perhaps
        (b"\x03\0" + UUID, "AWS Glue Schema Registry values (magic byte 3)"),
        (b"\x03\x05" + UUID + b"data", "AWS Glue Schema Registry values (magic byte 3)"),
        (b"\x03\x01" + UUID, None),
        (b"\x03\0" + UUID[1:], None),
        (b"\0\0\0\x01", None),
        (b"\0" * 64, None),
        (b'{"id": 1}', None),
        (b"", None),
    ],
)
def test_kinds(value: bytes, expected: str | None) -> None:
    kind = registry_kind(value)
    assert (kind and kind.name) == expected


def test_too_many_rejects_say_how_the_first_one_looks() -> None:
    limits = RejectLimits(max_lines=1, max_bytes=1_000, on_excess="quarantine")
    spool = RejectSpool("m-1", "kafka://main/events/0?from=0&to=9", limits, Scratch(1_000))
    spool.add(Reject(1, 0, "invalid_json", b"\0\0\0\0\x07data"))
    with pytest.raises(
        FileError, match=r"the first looks like schema registry values \(magic byte 0, schema 7\)"
    ) as exc:
        spool.add(Reject(2, 9, "invalid_json", b"no json"))
    assert exc.value.status is FileStatus.TOO_MANY_REJECTS


LIMITS = Limits(max_line_bytes=1 << 20, max_decompressed_bytes=1 << 30)
BOM = b"\xef\xbb\xbf"
OBJECTS = [{"id": number, "text": 'a "quoted", [b]'} for number in range(300)]
LINES = b"".join(json.dumps(each).encode() + b"\n" for each in OBJECTS)
LONG = b'"' + b"x" * LOOK_BYTES + b'"'


def name_of(content: bytes, size: int = 1 << 22) -> str:
    kind, pieces = recognised(content[at : at + size] for at in range(0, len(content), size))
    assert b"".join(pieces) == content
    return kind.name if kind else "NDJSON"


def arrow_stream() -> bytes:
    table = pa.table({"id": [1, 2]})
    with pa.BufferOutputStream() as sink:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())


def parquet() -> bytes:
    pq.write_table(pa.table({"a": ["x"] * 100}), target := io.BytesIO())
    return target.getvalue()


def orc_file() -> bytes:
    orc.write_table(pa.table({"a": ["x"] * 100}), target := io.BytesIO())
    return target.getvalue()


def zipped(*names: str) -> bytes:
    with zipfile.ZipFile(target := io.BytesIO(), "w") as archive:
        for name in names:
            archive.writestr(name, LINES)
    return target.getvalue()


def tarred(form: int) -> bytes:
    with tarfile.open(fileobj=(target := io.BytesIO()), mode="w", format=form) as archive:
        entry = tarfile.TarInfo("lines.ndjson")
        entry.size = len(LINES)
        archive.addfile(entry, io.BytesIO(LINES))
    return target.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(json.dumps(OBJECTS).encode(), "one JSON array", id="array"),
        pytest.param(json.dumps(OBJECTS[:1]).encode() + b"\n", "one JSON array", id="array of one"),
        pytest.param(b"[]", "one JSON array", id="empty array"),
        pytest.param(b"[\n]\n", "one JSON array", id="empty array of two lines"),
        pytest.param(json.dumps(OBJECTS, indent=2).encode(), "one JSON array", id="pretty array"),
        pytest.param(b"[\n" + LINES.replace(b"\n", b",\n")[:-2] + b"\n]", "one JSON array", id="element a line"),
        pytest.param(b"[\n" + LINES[:-1].replace(b"\n", b"\n,\n") + b"\n]", "one JSON array", id="comma a line"),
        pytest.param(b'[\n{"a":1},\n{"a":NaN},\n{"a":2}\n]\n', "one JSON array", id="array with a bad element"),
        pytest.param(
            b'[{"a":' + LONG * 3 + b'},\n{"a":' + LONG + b"},\n{},\n{}]", "one JSON array", id="long elements"
        ),
        pytest.param(BOM + b'\n [{"a":1}]', "one JSON array", id="array after a byte order mark"),
        pytest.param(b'[{"a":1}]\n[{"b":2}]\n', "several JSON arrays", id="arrays"),
        pytest.param(json.dumps(OBJECTS[0], indent=1).encode(), "pretty-printed JSON", id="pretty"),
        pytest.param(b'{"rows": [\n' + LINES.replace(b"\n", b",\n") + b"{}]}", "pretty-printed JSON", id="wrapped"),
        pytest.param(
            b"\n".join(json.dumps(each, indent=1).encode() for each in OBJECTS), "pretty-printed JSON", id="pretty ones"
        ),
        pytest.param(LINES.replace(b"\n", b""), "JSON documents without line feeds between them", id="no line feeds"),
        pytest.param(b"a,b\n1,2\n", "CSV", id="csv"),
        pytest.param(b'a;b\n"1\n1";2\n', "CSV", id="csv with semicolons and a quoted line feed"),
        pytest.param(b"a\tb\tc\n" + b"1\t2\t3\n" * 40_000, "TSV", id="tsv"),
        pytest.param(parquet(), "Parquet", id="parquet"),
        pytest.param(arrow_stream(), "an Arrow stream", id="arrow stream"),
        pytest.param(orc_file(), "ORC", id="orc"),
        pytest.param(b'Obj\x01\x02\x16avro.schema\x20{"type":"string"}\x00' + b"x" * 99, "Avro", id="avro"),
        pytest.param(zipped("a.ndjson"), "a zip archive", id="zip of stored lines"),
        pytest.param(zipped(), "a zip archive", id="empty zip"),
        pytest.param(zipped("[Content_Types].xml", "xl/workbook.xml"), "an Excel workbook", id="xlsx"),
        pytest.param(tarred(tarfile.USTAR_FORMAT), "a tar archive", id="tar of lines"),
        pytest.param(tarred(tarfile.GNU_FORMAT), "a tar archive", id="gnu tar"),
        pytest.param(LINES.decode().encode("utf-16"), "UTF-16 text", id="utf-16"),
        pytest.param(LINES.decode().encode("utf-16-be"), "UTF-16 text", id="utf-16 without a mark"),
        pytest.param(LINES.decode().encode("utf-32"), "UTF-32 text", id="utf-32"),
        pytest.param(LINES.decode().encode("utf-32-be"), "UTF-32 text", id="utf-32 without a mark"),
        pytest.param(b"\n<!DOCTYPE html>\n<html><p>404</p></html>\n", "an HTML page", id="html"),
        pytest.param(b'<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>', "XML", id="xml"),
        pytest.param(gzip.compress(LINES, mtime=0), "gzip data that was compressed twice", id="twice"),
        pytest.param(bytes(range(256)) * 9, "binary data", id="binary"),
        pytest.param(b"\0" * 100_000, "binary data", id="zeros"),
    ],
)
def test_a_kind_is_recognised(content, name):
    """By its content, however it arrives in pieces."""
    assert name_of(content) == name
    assert name_of(content, 1000) == name


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n \r\n", id="blank"),
        pytest.param(LINES, id="lines"),
        pytest.param(b'{"a":' + b"[" * 9999 + b"\n" + LINES, id="unclosed brackets"),
        pytest.param(b'[{"id":1}]\n' + LINES, id="an array first"),
        pytest.param(b"[" + b'{"id":1},' * 200_000 + b"{}]\n" + LINES, id="a long array first"),
        pytest.param(b"[" + b"1," * 9_000 + b"1]\n" + LINES, id="an array of many numbers first"),
        pytest.param(b"[" + b"{}," * 9_000 + b"{}]\n" + LINES, id="an array of many objects first"),
        pytest.param(b"{}" * 9_000 + b"\n" + LINES, id="many objects first"),
        pytest.param(b"[\n" + LINES, id="a bracket first"),
        pytest.param(b'{"a":1}{"b":2}\n' + LINES, id="two objects first"),
        pytest.param(b'{"a":1} {"b":2}\n' * 9 + b"{}\n", id="pairs, and a record"),
        pytest.param(b'{"a":\n' + LINES, id="half an object first"),
        pytest.param(b'{"a":1,\n"b":2}\n' + LINES, id="an object of two lines first"),
        pytest.param(b"a,b\n1,2\n" + LINES, id="a table first"),
        pytest.param(b"<html>\n" + LINES, id="a tag first"),
        pytest.param(b"\0" * 60_000 + LINES, id="zeros first"),
        pytest.param(b"PAR1\n" + LINES, id="letters of Parquet first"),
        pytest.param(b"\xff\xfe" + LINES, id="a mark of UTF-16 first"),
        pytest.param(b"{'a': 1, 'b': 2}\n" * 9, id="objects of another language"),
        pytest.param('{"a":"é"}\n'.encode("latin-1") * 99, id="latin-1"),
        pytest.param(b"[1]\n[2]\n", id="rows as arrays"),
        pytest.param(b"[2025-12-21 10:00:00] started, at last\n" * 3, id="log lines in brackets"),
        pytest.param(b"one line, of text\n", id="a line of text"),
        pytest.param(b"plain text\nof two lines\n", id="text"),
        pytest.param(b'{"a":1', id="a cut line"),
        pytest.param(b'{"a":' + LONG * 20 + b"}\n" + LINES, id="a long line first"),
        pytest.param(b'[\n{"a":' + LONG * 20 + b"}\n" + LINES, id="a bracket and a long line first"),
    ],
)
def test_lines_stay_lines(content):
    """A file that may be NDJSON is read line by line, whatever its first lines are."""
    assert name_of(content) == "NDJSON"
    assert name_of(content, 1000) == "NDJSON"


BAD = st.one_of(
    st.binary(max_size=90).map(lambda line: line.replace(b"\n", b"")),
    st.lists(
        st.sampled_from(
            [b"[", b"{", b"]", b"}", b",", b":", b'"', b'"a"', b"1", b" ", b"{}", b'{"a":1}', b"[1]", b"\\"]
        ),
        max_size=12,
    ).map(b"".join),
    st.sampled_from([b"PAR1", b"ORC", b"Obj\x01", b"<html>", b"<?xml ", b"\xff\xfe", b"\0\0\xfe\xff", b"a,b", b"a\tb"]),
)
RECORD = st.dictionaries(st.text(max_size=3), st.one_of(st.text(max_size=9), st.lists(st.integers(), max_size=3)))


@given(BAD, st.lists(RECORD.map(lambda each: json.dumps(each).encode()), min_size=1, max_size=6), st.booleans())
@example(b"[", [b"{}"], False)
@example(b'{"a":', [b"{}"], True)
@example(b'[{"a":1},', [b"{}", b"{}"], False)
@example(b'{"a":1}{"b":', [b"{}"], True)
def test_a_bad_first_line_changes_nothing(bad, records, ends):
    """One line that is no record makes no other kind of a file whose other lines are records."""
    assert name_of(b"\n".join([bad, *records]) + b"\n" * ends) == "NDJSON"


@given(
    st.one_of(st.binary(max_size=300), st.binary(min_size=1, max_size=9).map(lambda part: part * 60)),
    st.integers(1, 300),
)
def test_any_bytes_have_a_kind_or_none(content, size):
    """Recognition never fails, loses no byte, and does not depend on how the bytes arrive."""
    assert name_of(content, size) == name_of(content)


def test_a_file_of_another_kind_is_refused():
    """The error has the words of the report; JSON is read where it is accepted."""
    options = {"on_reject": lambda _: None}
    with pytest.raises(FileError) as caught:
        inspect_lines([b'[{"a":1}]'], LIMITS, split=Formats().splitter("/raw/a"), **options)
    assert (caught.value.status, caught.value.message) == (
        FileStatus.NOT_NDJSON,
        "looks like one JSON array; read it with --format json",
    )
    found = inspect_lines([b'[{"a":1}]'], LIMITS, split=Formats("json").splitter("/raw/a"), **options)
    assert (found.lines, found.records, found.format) == (1, 1, "json")
    with pytest.raises(FileError, match="looks like CSV; convert it to NDJSON"):
        inspect_lines([b"a,b\n1,2\n"], LIMITS, split=Formats("json").splitter("/raw/a"), **options)


def test_what_is_on_record_is_not_recognised_again():
    """Redriven lines are lines, and a rebuild reads files as they were read before."""
    array, options = b'[{"a":1}]\n', {"on_reject": lambda _: None}
    lines_folder = Formats("json", lines_folder="/state/redriven/")
    recorded = Formats("recorded", {"/raw/json": DOCUMENTS})
    for formats, uri, expected in [
        (lines_folder, "/state/redriven/m-1/000000.ndjson", "ndjson"),
        (lines_folder, "/raw/000000.ndjson", "json"),
        (recorded, "/raw/json", "json"),
        (recorded, "/raw/lines", "ndjson"),
    ]:
        found = inspect_lines([array], LIMITS, split=formats.splitter(uri), **options)
        assert (found.format, found.records) == (expected, int(expected == "json"))


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize("formats", [Formats(), Formats("json"), Formats("recorded")])
def test_nul_bytes_before_the_first_line_are_skipped(formats, size):
    """They are counted, and rejects keep their places in the file; fewer are part of the first line."""
    rejects, good = [], []

    def run(data, split):
        rejects.clear()
        good.clear()
        pieces = (data[at : at + size] for at in range(0, len(data), size))
        return inspect_lines(pieces, limits, split=split, on_reject=rejects.append, on_good=good.append)

    limits = replace(LIMITS, max_decompressed_bytes=200)
    lines = b'{"a":1}\nno\n{"a":2}'
    split = formats.splitter("/raw/a")
    found = run(bytes(100) + lines, split)
    assert (found.hole_bytes, found.decoded_bytes, found.lines, found.records) == (100, 100 + len(lines), 3, 2)
    assert b"".join(good) == b'{"a":1}\n{"a":2}\n'
    assert [(each.line_number, each.byte_offset, each.raw) for each in rejects] == [(2, 108, b"no")]
    found = run(bytes(7) + lines, split)
    assert (found.hole_bytes, found.records, rejects[0].raw) == (0, 1, bytes(7) + b'{"a":1}')
    found = run(bytes(100) + lines, Formats(lines_folder="/raw/").splitter("/raw/a"))
    assert (found.hole_bytes, found.records) == (0, 1)
    with pytest.raises(FileError, match="100 NUL bytes; expected NDJSON"):
        run(bytes(100), split)
    with pytest.raises(FileError, match="expected at most max_decompressed_bytes = 200"):
        run(bytes(201), split)


def test_recognition_looks_at_the_beginning():
    """However long the file, it is read ahead by one look."""
    taken = []

    def pieces():
        for number in range(100):
            taken.append(number)
            yield b'["x"],\n' * 10_000

    recognised(pieces())
    assert sum(taken) < LONG_LOOK_BYTES / 70_000
