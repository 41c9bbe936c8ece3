"""Searches an input file for lines that hold a value, decoded and in memory that does not grow with it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound
from compactor.core.ports import ObjectStore
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.files.object_reading import RANGES_AHEAD, open_file, read_ranges
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.lines import Limits, Reject, Splitter
from compactor.ops.forget.wanted import Wanted
from compactor.schema.schema import NO_NEW_KEYS


@dataclass(frozen=True, slots=True)
class InputFound:
    """What is known of an input file.

    Attributes:
        etag: The version that was searched; empty if the file is gone.
        holds: Whether it holds a value.
        fault: Why it could not be searched to its end; empty if it was.
    """

    etag: str = ""
    holds: bool = False
    fault: str = ""


class _Found(Exception):
    """A line holds a value: the rest need not be read."""


def search_input(store: ObjectStore, uri: str, split: Splitter, limits: Limits, wanted: Wanted) -> InputFound:
    """Search the version of a file that is there now.

    Args:
        store: Has it.
        uri: The file.
        split: Splits it as it was split when it was compacted.
        limits: The longest line. A longer one is searched in pieces, as if it were no JSON.
        wanted: What to search for.
    """
    etag = ""
    try:
        opened = open_file(store, ManifestFile(uri=uri), any_version=True)
        etag = opened.etag
        with ThreadPoolExecutor(RANGES_AHEAD) as pool, closing(read_ranges(store, opened, pool)) as stored:
            pieces = decode(sniff(opened.first[:SNIFF_BYTES]), stored)
            lines = _Lines(wanted)
            inspect_lines(
                pieces,
                limits,
                on_reject=lines.on_reject,
                on_good=lines.on_good,
                split=split,
                key_limits=NO_NEW_KEYS,
            )
    except _Found:
        return InputFound(etag, holds=True)
    except ObjectNotFound:
        return InputFound()
    except FileError as exc:
        return InputFound() if exc.status == "missing" else InputFound(etag, fault=f"{exc.status}: {exc}")
    except (AccessError, LinkRefused, ObjectChanged) as exc:
        return InputFound(etag, fault=str(exc))
    return InputFound(etag)


class _Lines:
    """Looks at each line, and raises `_Found` at the first that holds a value."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._line, self._before = 0, b""

    def on_good(self, block: bytes) -> None:
        if self._wanted.may_be_in(block) and any(map(self._wanted.in_line, block.split(b"\n")[:-1])):
            raise _Found

    def on_reject(self, reject: Reject) -> None:
        broken, searched = self._wanted.broken, reject.raw
        if reject.line_number == self._line:
            searched = self._before + reject.raw
            is_found = broken.holds(searched)
        else:
            is_found = self._wanted.in_line(searched)
        if is_found:
            raise _Found
        self._line, self._before = reject.line_number, searched[-broken.overlap_bytes :]
