"""The process that feeds: links ready-made files under new names at a steady rate, and announces each.

python -m bench.sustained.feeder --help. Without a queue it announces on stdout.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

from bench.sustained.messages import QueueSender, announcement
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


@dataclass(frozen=True, slots=True)
class Target:
    """Where links go: a folder on the disk of the files, its URI, and the day in their names."""

    folder: Path
    uri: str
    day: str


def feed(
    source: Path,
    etags: Mapping[str, str],
    target: Target,
    *,
    bytes_per_second: float,
    seconds: float,
    tell: Callable[[str], object],
) -> Fed:
    """Link files at a steady rate until the time is over. A feeder that is late catches up.

    Args:
        source: The folder of ready-made files, which are used in turn.
        etags: The ETag of each, by its name; links have it, too.
        target: Where the links go.
        bytes_per_second: The rate.
        seconds: How long to feed.
        tell: Called with the announcement of each file.
    """
    began = time.monotonic()
    files = fed_bytes = 0
    sizes = {ready: ready.stat().st_size for ready in sorted(source.iterdir())}
    for ready in cycle(sizes):
        due = began + fed_bytes / bytes_per_second
        if due >= began + seconds:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        name = raw_name(target.day, files, ready)
        os.link(ready, target.folder / name)
        # Not the link's own time, which is that of the file: all links to one file share it.
        file = ManifestFile(
            uri=f"{target.uri}/{name}", size_bytes=sizes[ready], etag=etags[ready.name], event_time=datetime.now(UTC)
        )
        tell(announcement(file))
        files += 1
        fed_bytes += sizes[ready]
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return Fed(files, fed_bytes, time.monotonic() - began)


def main() -> None:
    """Feed, and write a report."""
    parser = ArgumentParser()
    for name in ("--source", "--etags", "--raw", "--report"):
        parser.add_argument(name, type=Path, required=True)
    for name in ("--day", "--raw-uri"):
        parser.add_argument(name, required=True)
    for name in ("--queue", "--region"):
        parser.add_argument(name, default="")
    for name in ("--megabytes-per-second", "--seconds"):
        parser.add_argument(name, type=float, required=True)
    given = parser.parse_args()

    def say(message: str) -> None:
        sys.stdout.write(f"{message}\n")
        sys.stdout.flush()

    sender = QueueSender(given.queue, given.region) if given.queue else None
    fed = feed(
        given.source,
        json.loads(given.etags.read_text()),
        Target(given.raw, given.raw_uri, given.day),
        bytes_per_second=given.megabytes_per_second * 1e6,
        seconds=given.seconds,
        tell=sender.send if sender else say,
    )
    if sender:
        sender.flush()
    given.report.write_text(json.dumps(asdict(fed)))


if __name__ == "__main__":
    main()
