"""How Spark's file source treats a URI: what it skips or misreads, how to escape it, and how Spark shows it."""

import re
import unicodedata

from compactor.core.layout import base_name, canonical
from compactor.ndjson.inspection import Inspected

CODEC_EXTENSIONS = (".gz", ".gzip", ".bz2", ".zst", ".zstd", ".snappy", ".lz4", ".deflate")
"""Suffixes by which Hadoop considers a file compressed, whatever its content."""

_SINK_METADATA = "_spark_metadata"  # Spark silently finds no rows at any depth below such a folder
_GLOB = re.compile(r"([\\*?\[\]{}])")
_LEGAL_ASCII = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-!.~'()*;:@&=+$,/")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FIRST_NON_ASCII = "\x80"


def spark_reads_as_is(uri: str, codec: str, inspected: Inspected) -> bool:
    """Whether Spark's JSON reader, given the file itself, reads exactly its records."""
    has_others = inspected.has_bom or inspected.hole_bytes or inspected.rejected_lines
    has_only_records = not (has_others or inspected.format == "json")
    return spark_reads_name(uri, codec) and has_only_records


def spark_reads_name(uri: str, codec: str) -> bool:
    """Whether Spark finds a file under its name and decodes it correctly.

    Args:
        uri: The file.
        codec: The codec detected from its content: one of `compactor.ndjson.codecs.CODECS`.
    """
    name = base_name(uri)
    if codec == "gzip":
        decodes = name.endswith(".gz")
    else:
        decodes = codec == "none" and not name.lower().endswith(CODEC_EXTENSIONS)
    hidden = name.startswith(("_", ".")) or name.endswith("._COPYING_")
    return decodes and not hidden and _is_plain_path(_path(uri))


def spark_path(uri: str) -> str:
    """A URI for `spark.read`: in its canonical scheme, with glob characters escaped."""
    return _GLOB.sub(r"\\\1", _with_scheme(uri))


def hadoop_encoded(uri: str) -> str:
    """Spark's name for a file in `input_file_name()` and `_metadata.file_path`: its URI, quoted as by `java.net.URI`.

    Legal ASCII stays; all other ASCII, including `%`, is percent-encoded. Beyond ASCII, only spaces and control
    characters are (observed with Java 17).
    """
    scheme, _, rest = _with_scheme(uri).partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}{slash}{''.join(map(_quoted, path))}"


def _quoted(character: str) -> str:
    if character < _FIRST_NON_ASCII:
        kept = character in _LEGAL_ASCII
    else:
        kept = unicodedata.category(character) not in {"Zs", "Zl", "Zp", "Cc"}
    return character if kept else "".join(f"%{byte:02X}" for byte in character.encode())


def _with_scheme(uri: str) -> str:
    place = canonical(uri)
    return f"file://{place}" if place.startswith("/") else place


def _path(uri: str) -> str:
    """The path below the bucket or the root."""
    place = canonical(uri)
    return place.removeprefix("/") if place.startswith("/") else place.removeprefix("s3://").partition("/")[2]


def _is_plain_path(path: str) -> bool:
    """Whether Hadoop leaves a path unchanged (it normalises segments, and refuses a colon) and Spark reads it."""
    segments = path.split("/")
    return (
        ":" not in path
        and not _CONTROL.search(path)
        and _SINK_METADATA not in segments
        and all(segment not in {"", ".", ".."} and segment == segment.strip() for segment in segments)
    )
