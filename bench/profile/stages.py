"""Which stage of the work a place in the program belongs to. No I/O.

A sample is a stack of places. Places that anyone may call, such as `memcpy` or a hash table, match no rule, so the
first place outwards that does match tells the stage.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache


class Stage(StrEnum):
    """The stages, in the order in which a value goes through them."""

    READ = "read"
    DECODE = "decode"
    UTF8 = "UTF-8"
    SCAN = "scan"
    KEYS = "keys"
    BUILD = "build"
    DICTIONARY = "dictionary"
    ENCODE = "encode"
    COMPRESS = "compress"
    STATISTICS = "statistics"
    WRITE = "write"
    HASH = "hash"
    VERIFY = "verify"
    PYTHON = "Python"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a processor was, or will return to.

    Attributes:
        module: The name of the program or library.
        function: Empty if it is not known.
        source: The path of the source; empty if it is not known.
    """

    module: str
    function: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Places of a stage: those in which each pattern is found. An empty pattern is found everywhere."""

    stage: Stage
    module: str = ""
    function: str = ""
    source: str = ""

    def holds(self, place: Place) -> bool:
        pairs = (self.module, place.module), (self.function, place.function), (self.source, place.source)
        return all(re.search(pattern, text) for pattern, text in pairs)


_KERNEL = r"^compactor_native"
_LIBC = r"^libc[.-]"

RULES = (
    # The kernel's own sources.
    Rule(Stage.UTF8, _KERNEL, source=r"/simdutf8-"),
    Rule(Stage.UTF8, _KERNEL, r"is_line_text|run_utf8_validation"),
    Rule(Stage.SCAN, _KERNEL, source=r"native/src/scan\.rs"),
    Rule(Stage.SCAN, _KERNEL, source=r"native/src/special\.rs"),
    Rule(Stage.KEYS, _KERNEL, source=r"native/src/keys\.rs"),
    Rule(Stage.STATISTICS, _KERNEL, source=r"native/src/statistics\.rs"),
    Rule(Stage.WRITE, _KERNEL, source=r"native/src/output\.rs"),
    Rule(Stage.WRITE, _KERNEL, source=r"native/src/parts\.rs"),
    Rule(Stage.WRITE, _KERNEL, r"python_bytes", r"native/src/lib\.rs"),
    Rule(Stage.STATISTICS, _KERNEL, source=r"native/src/text/bounds\.rs"),
    Rule(Stage.DICTIONARY, _KERNEL, source=r"native/src/text/dictionary\.rs"),
    Rule(Stage.ENCODE, _KERNEL, source=r"native/src/text/hybrid\.rs"),
    Rule(Stage.ENCODE, _KERNEL, source=r"native/src/text/writer\.rs"),
    Rule(Stage.COMPRESS, _KERNEL, source=r"native/src/text/snappy\.rs"),
    Rule(Stage.WRITE, _KERNEL, source=r"native/src/text/pages\.rs"),
    Rule(Stage.BUILD, _KERNEL, source=r"native/src/"),
    # Its libraries.
    Rule(Stage.COMPRESS, _KERNEL, source=r"/snap-|/zstd|/parquet-[^/]+/src/compression"),
    Rule(Stage.COMPRESS, _KERNEL, r"^(ZSTD|HUF|FSE|HIST|XXH)"),
    Rule(Stage.STATISTICS, _KERNEL, source=r"/parquet-[^/]+/src/(geospatial|file/statistics|bloom_filter)"),
    Rule(
        Stage.STATISTICS,
        _KERNEL,
        r"update_(min|max)|get_min_max|compute_min_max|is_greater|compare_greater|truncate_(min|max|statistics)",
        r"/parquet-",
    ),
    Rule(Stage.DICTIONARY, _KERNEL, source=r"/parquet-[^/]+/src/(util/interner|encodings/encoding/dict_encoder)"),
    Rule(Stage.DICTIONARY, _KERNEL, r"Dict(ionary)?Encoder|ByteArrayDict|intern", r"/parquet-"),
    Rule(Stage.WRITE, _KERNEL, source=r"/parquet-[^/]+/src/(file/|thrift|parquet_thrift|format)"),
    Rule(Stage.WRITE, _KERNEL, r"ArrowPageWriter|append_to_row_group|append_column", r"/parquet-"),
    Rule(Stage.ENCODE, _KERNEL, source=r"/parquet-"),
    # What the kernel of the system does for a caller takes its time in these functions.
    Rule(Stage.READ, _LIBC, r"^_*(read|pread|preadv|readv)(64)?(v2)?$"),
    Rule(Stage.WRITE, _LIBC, r"^_*(write|pwrite|writev|f(data)?sync|rename(at2?)?|link(at)?|unlink(at)?)(64)?$"),
    # Libraries that Python calls.
    Rule(Stage.DECODE, r"^(libz[.-]|zlib\.|zlib_ng\.|libzstd|_zstd|libbz2|_bz2|liblzma|_lzma|libisal|isal)"),
    Rule(Stage.HASH, r"^(blake3|libcrypto|_hashlib|_sha\d|_blake2|_md5)"),
    Rule(Stage.VERIFY, r"^(libarrow|libparquet|_parquet\.|lib\.cpython|_dataset)"),
    Rule(Stage.PYTHON, r"^(libpython|python|ld-linux|ld-musl)|^(?!compactor_native).*\.(cpython-.*|abi3)\.so$"),
)
"""The first rule that holds for a place tells its stage."""


@cache
def stage_of_place(place: Place) -> Stage | None:
    """The stage of one place; None if any stage may call it."""
    return next((rule.stage for rule in RULES if rule.holds(place)), None)


def stage_of(stack: Iterable[Place]) -> Stage:
    """The stage of a sample.

    Args:
        stack: From the innermost place outwards.
    """
    return next((stage for place in stack if (stage := stage_of_place(place)) is not None), Stage.OTHER)
