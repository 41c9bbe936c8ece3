"""Files in any encoding, under any name, and files that cannot be read whole: each by itself."""
# ruff: noqa: E501 - tables read best in full lines

import bz2
import gzip
import lzma
import zlib

import cramjam
import zstandard

from compactor.core.documents.manifest import ManifestFile

BOM = b"\xef\xbb\xbf"
LIMIT_BYTES = 1024 * 1024


def body(name: str) -> bytes:
    return b'{"file":"%s","v":1.10}\n{"file":"%s","v":"\xc3\xa9"}\n' % (name.encode(), name.encode())


ENCODERS = {
    "none": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "zlib": zlib.compress,
    "snappy": lambda data: bytes(cramjam.snappy.compress(data)),
}

ENCODED = (
    ("gzip", "a.ndjson.gz"), ("gzip", "a"), ("gzip", "a.GZ"), ("gzip", "a.json"), ("gzip", "a.bz2"), ("bzip2", "b.bz2"),
    ("bzip2", "b"), ("xz", "c.xz"), ("xz", "c"), ("zstd", "d.zst"), ("zstd", "d.zstd"), ("zstd", "d"), ("zlib", "e"),
    ("zlib", "e.deflate"), ("snappy", "f.snappy"), ("snappy", "f.sz"), ("none", "g.gz"), ("none", "g.bz2"),
    ("none", "g.zst"), ("none", "g.snappy"), ("none", "g.lz4"), ("none", "g.deflate"), ("none", "g.gzip"),
    ("none", "g.GZ"), ("none", "g.xz"), ("none", "g"),
)  # fmt: skip


def test_encodings_are_told_by_content(workspace):
    """Each file gives its rows, whatever its name says: several members, byte order marks and odd line ends included."""
    files = {name: ENCODERS[codec](body(name)) for codec, name in ENCODED}
    codecs = {name: codec for codec, name in ENCODED}
    halves = body("members.gz").splitlines(keepends=True)
    special = {
        "members.gz": b"".join(map(gzip.compress, halves)),
        "members": gzip.compress(body("members")[:20]) + gzip.compress(body("members")[20:]),
        "frames": zstandard.compress(body("frames")[:9]) + zstandard.compress(body("frames")[9:]),
        "bom": BOM + body("bom"),
        "bom.gz": gzip.compress(BOM + body("bom.gz")),
        "crlf": body("crlf").replace(b"\n", b"\r\n"),
        "no end": body("no end").rstrip(b"\n"),
        "no end.gz": gzip.compress(body("no end.gz").rstrip(b"\n")),
        "blank": b"\n\r\n" + body("blank").replace(b"\n", b"\n \t\n") + b"\n\n",
    }
    compacted = workspace.compact(files | special)
    names = [*files, *special]
    assert sorted((row["file"], row["v"]) for row in compacted.rows) == sorted(
        (name, value) for name in names for value in ("1.10", "é")
    )
    assert compacted.rejects == []
    assert {name: compacted.report(name).codec for name in codecs} == codecs
    assert compacted.report("blank").blank_lines == 6


def test_files_that_cannot_be_read_are_quarantined_alone(new_workspace):
    """A bomb, a cut or corrupt file, one that is missing or another version: none of its lines, all of the others'."""
    workspace = new_workspace(input={"max_decompressed_bytes": LIMIT_BYTES})
    good = {name: encode(body(name)) for name, encode in ENCODERS.items()}
    packed = gzip.compress(body("x") * 100)
    line = b'{"file":"bomb"}\n'
    broken = {
        "cut.gz": ("unreadable", packed[:-9]),
        "cut": ("unreadable", packed[:-30]),
        "damaged.gz": ("unreadable", packed[:40] + b"\0\0\0\0" + packed[44:]),
        "more.gz": ("unreadable", packed + b"more"),
        "cut.zst": ("unreadable", zstandard.compress(body("x") * 100)[:-3]),
        "bomb": ("too_large", line * (LIMIT_BYTES // len(line) + 1)),
        # The last one: files after it would be left to a later manifest.
        "bomb.gz": ("too_large", gzip.compress(line * (2 * LIMIT_BYTES // len(line)))),
    }
    readable = [workspace.write(*file) for file in good.items()]
    unreadable = [workspace.write(name, data) for name, (_, data) in broken.items()]
    found = workspace.app.store.stat(workspace.write("other etag", body("x")))
    changed = [
        ManifestFile(uri=found.uri, etag="0-0-0", size_bytes=found.size_bytes),
        ManifestFile(uri=workspace.write("other size", body("x")), size_bytes=1),
    ]
    compacted = workspace.compact([*readable, workspace.raw + "missing", *changed, *unreadable])
    assert sorted(row["file"] for row in compacted.rows) == sorted([*good, *good])
    assert compacted.rejects == []
    expected = {name: status for name, (status, _) in broken.items()} | dict.fromkeys(good, "compacted")
    expected |= {"missing": "missing", "other etag": "changed", "other size": "changed"}
    assert {report.uri.rsplit("/", 1)[1]: report.status for report in compacted.commit.files} == expected
    assert all(report.detail for report in compacted.commit.files if report.status != "compacted")
