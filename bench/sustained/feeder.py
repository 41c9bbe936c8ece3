"""The process that feeds: links ready-made files under new names at a steady rate, and announces each on stdout.

python -m bench.sustained.feeder --source DIR --raw DIR --day DAY --megabytes-per-second N --seconds N --report FILE
"""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.sustained.messages import announcement
from compactor.adapters.local.store import LocalStore
from compactor.core.documents.manifest import ManifestFile


@dataclass(frozen=True, slots=True)
class Fed:
    """What was fed: number of links, their total size, and the time from the first link to the end."""

    files: int
    bytes: int
    seconds: float


def raw_name(day: str, number: int, source: Path) -> str:
    """The name of the nth file; `source_name` gives the ready-made file that it links to."""
    return f"{day}-{number:07d}+{source.name}"


def source_name(uri: str) -> str:
    """The name of the ready-made file that a file was linked to."""
    return uri.rpartition("+")[2]


def feed(
    source: Path, raw: Path, day: str, *, bytes_per_second: float, seconds: float, tell: Callable[[str], object]
) -> Fed:
    """Link files at a steady rate until the time is over. A feeder that is late catches up.

    Args:
        source: The folder of ready-made files, which are used in turn.
        raw: The folder for the links, on the same disk.
        day: The day in their names.
        bytes_per_second: The rate.
        seconds: How long to feed.
        tell: Called with the announcement of each file.
    """
    store = LocalStore()
    began = time.monotonic()
    files = fed_bytes = 0
    for ready in _in_turns(sorted(source.iterdir())):
        due = began + fed_bytes / bytes_per_second
        if due >= began + seconds:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        path = raw / raw_name(day, files, ready)
        os.link(ready, path)
        info = store.stat(str(path))
        if info is None:
            raise FileNotFoundError(f"{path}: went away as soon as it was there")
        # Not the link's own time, which is that of the file: all links to one file share it.
        tell(announcement(ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag, event_time=_now())))
        files += 1
        fed_bytes += info.size_bytes
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return Fed(files, fed_bytes, time.monotonic() - began)


def _in_turns(ready: list[Path]) -> Iterator[Path]:
    while True:
        yield from ready


def _now() -> datetime:
    return datetime.now(UTC)


def main() -> None:
    """Feed, and write a report."""
    parser = ArgumentParser()
    for name in ("--source", "--raw", "--report"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--day", required=True)
    for name in ("--megabytes-per-second", "--seconds"):
        parser.add_argument(name, type=float, required=True)
    given = parser.parse_args()

    def tell(message: str) -> None:
        sys.stdout.write(f"{message}\n")
        sys.stdout.flush()

    rate = given.megabytes_per_second * 1e6
    fed = feed(given.source, given.raw, given.day, bytes_per_second=rate, seconds=given.seconds, tell=tell)
    given.report.write_text(json.dumps(asdict(fed)))


if __name__ == "__main__":
    main()
