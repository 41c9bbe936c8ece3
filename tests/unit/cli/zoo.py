"""A zoo of wrong and odd files, with what `compactor compact` makes of each."""

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile
import zlib
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, orc

QUARANTINED, FEW_ROWS, NO_DATA = 3, 3, 2
EXPECTED = "under half of the lines are rows; expected one JSON object a line; for lines of text"
TO_JSON = "; read it with --format json"
GOOD_IDS = tuple(f"good-{number}" for number in range(20))


@dataclass(frozen=True)
class Case:
    """One file, alone in its folder.

    Attributes:
        words: What the call says about it, or the detail of its report if it is quarantined.
        ids: Of its rows, in any order; None for a row without one.
        rejects: Rejected lines by reason.
        json_ids: The same with `--format json`, if that differs.
    """

    name: str
    content: bytes
    code: int = 0
    words: str = ""
    status: str = "compacted"
    ids: tuple[str | None, ...] = ()
    rejects: dict[str, int] = field(default_factory=dict)
    json_ids: tuple[str, ...] | None = None


def ids(name: str, number: int = 3) -> tuple[str, ...]:
    return tuple(f"{name}-{each}" for each in range(number))


def lines(name: str, number: int = 3) -> bytes:
    return b"".join(b'{"id":"%s"}\n' % each.encode() for each in ids(name, number))


def other(name: str, content: bytes, looks_like: str, move: str) -> Case:
    return Case(name, content, QUARANTINED, f"looks like {looks_like}; {move}", "not_ndjson")


def as_json(name: str, content: bytes, looks_like: str) -> Case:
    words = f"looks like {looks_like}{TO_JSON}"
    return Case(name, content, QUARANTINED, words, "not_ndjson", json_ids=ids(name.partition(".")[0]))


def bad(name: str, content: bytes, **rejects: int) -> Case:
    return Case(name, content, FEW_ROWS, EXPECTED, rejects=rejects)


def odd(name: str, content: bytes, **rejects: int) -> Case:
    return Case(name, content, ids=ids(name.partition(".")[0]), rejects=rejects)


def _records(name: str) -> list[dict[str, object]]:
    return [{"id": each, "more": {"text": "a, [b] {c}\n"}} for each in ids(name)]


def _zip(names: tuple[str, ...], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(target := io.BytesIO(), "w", method) as archive:
        for name in names:
            archive.writestr(name, lines("zipped"))
    return target.getvalue()


def _tar() -> bytes:
    with tarfile.open(fileobj=(target := io.BytesIO()), mode="w") as archive:
        entry = tarfile.TarInfo("lines.ndjson")
        entry.size = len(lines("tarred"))
        archive.addfile(entry, io.BytesIO(lines("tarred")))
    return target.getvalue()


def _written(write: object) -> bytes:
    write(pa.table({"id": list(ids("table", 100))}), target := io.BytesIO())  # type: ignore[operator]
    return target.getvalue()


_TABLE = b"id,text\nrow-1,a\nrow-2,b\n"
_PRETTY = b"\n".join(json.dumps(each, indent=2).encode() for each in _records("pretty-many"))
_ARRAY_OF_LINES = b"[\n" + lines("array-of-lines")[:-1].replace(b"\n", b",\n") + b"\n]\n"
_SQLITE = b"SQLite format 3\0\x10\0\1\1\0\x40\x20\x20" + b"\0" * 4072
_AVRO = b'Obj\x01\x04\x14avro.codec\x08null\x16avro.schema\x1c{"type":"long"}' + bytes(range(40))
_TEXT = b"2026-01-01T00:00:00Z INFO started\n2026-01-01T00:00:01Z WARN late\n"

CASES = (
    other("table.csv", _TABLE, "CSV", "convert it to NDJSON"),
    other("table.csv.gz", gzip.compress(_TABLE), "CSV", "convert it to NDJSON"),
    other("semicolons.csv", b'id;text\n1;"a\n;b"\n2;c\n', "CSV", "convert it to NDJSON"),
    other("table.tsv", _TABLE.replace(b",", b"\t"), "TSV", "convert it to NDJSON"),
    other("table.parquet", _written(pq.write_table), "Parquet", "expected NDJSON"),
    other("table.feather", _written(feather.write_feather), "Arrow", "expected NDJSON"),
    other("table.orc", _written(orc.write_table), "ORC", "expected NDJSON"),
    other("table.avro", _AVRO, "Avro", "expected NDJSON"),
    other("table.sqlite", _SQLITE, "an SQLite database", "expected NDJSON"),
    other("lines.zip", _zip(("lines.ndjson",)), "a zip archive", "unpack it"),
    other("stored.zip", _zip(("lines.ndjson",), zipfile.ZIP_STORED), "a zip archive", "unpack it"),
    other(
        "book.xlsx",
        _zip(("[Content_Types].xml", "xl/workbook.xml")),
        "an Excel workbook",
        "export its sheets as NDJSON",
    ),
    other("lines.tar", _tar(), "a tar archive", "unpack it"),
    other("lines.tar.gz", gzip.compress(_tar()), "a tar archive", "unpack it"),
    other(
        "twice.gz",
        gzip.compress(gzip.compress(lines("twice"))),
        "gzip data that was compressed twice",
        "decompress it once",
    ),
    other("wide", lines("wide").decode().encode("utf-16"), "UTF-16 text", "convert it to UTF-8"),
    other("wide-be", lines("wide").decode().encode("utf-16-be"), "UTF-16 text", "convert it to UTF-8"),
    other("wider", lines("wide").decode().encode("utf-32"), "UTF-32 text", "convert it to UTF-8"),
    other(
        "page.html",
        b"<!doctype html>\n<html><p>404</p>\n</html>\n",
        "an HTML page",
        "check where it was downloaded from",
    ),
    other(
        "error.xml", b'<?xml version="1.0"?>\n<Error><Code>NoSuchKey</Code></Error>\n', "XML", "convert it to NDJSON"
    ),
    other("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(64)), "a PDF document", "expected NDJSON"),
    other("noise", random.Random(1).randbytes(9999), "binary data", "expected NDJSON"),
    other("zeros", b"\0" * 9999, "9999 NUL bytes", "expected NDJSON"),
    as_json("array.json", json.dumps(_records("array")).encode(), "one JSON array"),
    as_json("array-zst.json.xz", lzma.compress(json.dumps(_records("array-zst")).encode()), "one JSON array"),
    as_json("pretty-array.json", json.dumps(_records("pretty-array"), indent=2).encode(), "one JSON array"),
    as_json("array-of-lines.json", _ARRAY_OF_LINES, "one JSON array"),
    as_json("arrays.json", b'[{"id":"arrays-0"}]\n[{"id":"arrays-1"},{"id":"arrays-2"}]\n', "several JSON arrays"),
    as_json("pretty-many.json", _PRETTY, "pretty-printed JSON"),
    Case(
        "pretty-one.json",
        json.dumps({"id": "pretty-one-0", "more": {"a": [1]}}, indent=2).encode(),
        QUARANTINED,
        f"looks like pretty-printed JSON{TO_JSON}",
        "not_ndjson",
        json_ids=ids("pretty-one", 1),
    ),
    as_json("marked-array.json", b"\xef\xbb\xbf" + json.dumps(_records("marked-array")).encode(), "one JSON array"),
    as_json(
        "carriage-returns-only",
        lines("carriage-returns-only").replace(b"\n", b"\r"),
        "JSON documents without line feeds between them",
    ),
    as_json("in-a-row.json", lines("in-a-row").replace(b"\n", b""), "JSON documents without line feeds between them"),
    Case(
        "cut.gz",
        gzip.compress(lines("cut", 999))[:-9],
        QUARANTINED,
        "truncated gzip: ends at about byte ",
        "unreadable",
    ),
    Case(
        "cut.bz2",
        bz2.compress(lines("cut", 999))[:-9],
        QUARANTINED,
        "truncated bzip2: ends at about byte ",
        "unreadable",
    ),
    Case("empty", b"", NO_DATA, "holds no files with data"),
    odd("blank-lines", b"\n\r\n" + lines("blank-lines").replace(b"\n", b"\n \n")),
    Case("only-blank", b" \n\n"),
    Case("nothing.gz", gzip.compress(b"")),
    odd("mark", b"\xef\xbb\xbf" + lines("mark")),
    odd("carriage-returns", lines("carriage-returns").replace(b"\n", b"\r\n")),
    odd("no-last-line-feed", lines("no-last-line-feed")[:-1]),
    odd("named.csv", lines("named")),
    odd("named-zip.zip", bz2.compress(lines("named-zip"))),
    odd("two-members.gz", gzip.compress(lines("two-members", 2)) + gzip.compress(lines("two-members")[-23:])),
    odd("deflated", zlib.compress(lines("deflated"))),
    odd("bad-first", b"started,at\n" + lines("bad-first"), invalid_json=1),
    odd("array-first", b'[{"id":"no"}]\n' + lines("array-first"), not_an_object=1),
    odd("bracket-first", b"[\n" + lines("bracket-first"), invalid_json=1),
    Case("zeros-first", b"\0" * 999 + b"\n" + lines("zeros-first"), words="999 NUL bytes", ids=ids("zeros-first")),
    odd("html-first", b"<html>\n" + lines("html-first"), invalid_json=1),
    odd("cut-last", lines("cut-last") + b'{"id":"cut', invalid_json=1),
    Case("wrapped.json", b'{"Records":[{"id":"no"}]}\n', ids=(None,)),
    bad("log.txt", _TEXT, invalid_json=2),
    bad("python", b"{'id': 'a', 'b': 1}\n{'id': 'b', 'b': 2}\n", invalid_json=2),
    bad("latin-1", '{"id":"é"}\n{"id":"è"}\n'.encode("latin-1"), invalid_utf8=2),
    bad("no-objects", b'null\n"text"\n12\ntrue\n', not_an_object=4),
    bad("rows-as-arrays", b'["id",1]\n["id",2]\n', not_an_object=2),
    bad("trailing-commas", lines("trailing-commas").replace(b"}\n", b"},\n"), invalid_json=3),
)
