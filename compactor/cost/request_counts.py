"""How many requests to S3 the work takes: counted where tests hold it against the code, else read from sources."""

import math
from dataclasses import dataclass

from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS
from compactor.ndjson.object_reading import RANGE_BYTES

STREAMED_PART_BYTES = 16 * 1024 * 1024
"""What is written as it comes goes to S3 in parts of so much; held against the writer by a test."""

_HOUR_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests to S3 by what they cost; DELETE costs nothing.

    Attributes:
        gets: GET and HEAD.
        puts: PUT, COPY, POST and LIST.
    """

    gets: float = 0
    puts: float = 0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(self.gets + other.gets, self.puts + other.puts)

    def __mul__(self, times: float) -> "Requests":
        return Requests(self.gets * times, self.puts * times)


def of_manifest(staged: int) -> Requests:
    """One manifest from delivered to archived, without what its engine asks for. Counted.

    The first attempt succeeds, and one read finds the whole footer of each staged file.

    Args:
        staged: Files of rows and of rejects together.
    """
    stats, reads, footers, copies = 4 + staged, 3, staged, 1 + staged
    records, listings, summaries = 5, 3, 1
    # Before it copies, boto3 asks for the size of the source.
    return Requests(gets=stats + reads + footers + copies, puts=records + listings + summaries + copies)


def of_inspected_file(file_bytes: int) -> Requests:
    """One file that is named with its ETag, read once: all of it for the native engine. Counted.

    The Spark engine inspects it so, if Spark can then read it as it is.
    """
    ranges = max(1, math.ceil(file_bytes / RANGE_BYTES))
    size_of_long_file = 1 if file_bytes >= RANGE_BYTES else 0
    return Requests(gets=ranges + size_of_long_file)


def of_heartbeat() -> Requests:
    """An hour of one run's signs of life. Counted."""
    return Requests(gets=1, puts=1) * (_HOUR_SECONDS / HEARTBEAT_INTERVAL_SECONDS)


def of_streamed_output(size_bytes: int) -> Requests:
    """One output of the native engine, which asks for nothing else. Counted.

    What fits into one part is sent in one request, else there is a beginning and an end beside the parts.
    """
    parts = math.ceil(size_bytes / STREAMED_PART_BYTES)
    return Requests(puts=1 if parts <= 1 else parts + 2)


def of_converted_file() -> Requests:
    """One input file on its way through the Spark engine and S3A. From their sources.

    It is looked up (HEAD), listed as if it were a folder (LIST, then HEAD), opened (HEAD), read (GET), and at the end
    the engine asks whether it was replaced meanwhile (HEAD).
    """
    return Requests(gets=5, puts=1)


def of_conversion(outputs: int) -> Requests:
    """What the Spark engine and S3A ask for once a manifest, and for each file they write. From their sources.

    An output is written in three parts, with a beginning and an end, and renamed (COPY) when its task commits, with
    look-ups on the way.
    """
    return Requests(gets=10, puts=8) + Requests(gets=8, puts=9) * outputs


def of_trigger() -> Requests:
    """One micro-batch beside its manifests: the watched prefix listed, the checkpoint written. Assumed."""
    return Requests(gets=20, puts=15)
