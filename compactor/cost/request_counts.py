"""S3 requests of each piece of work. Tests check the counted ones; the others come from reading the sources."""

import math
from dataclasses import dataclass

from compactor.cost.prices import HOUR_SECONDS
from compactor.job.shards import REFRESH_SECONDS
from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS
from compactor.ndjson.files.object_reading import RANGE_BYTES

STREAMED_PART_BYTES = 16 * 1024 * 1024  # of a part of a multipart upload; a test holds it against the writer


@dataclass(frozen=True, slots=True)
class Requests:
    """S3 requests by price; DELETE is free."""

    gets: float = 0  # GET and HEAD
    puts: float = 0  # PUT, COPY, POST and LIST

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(self.gets + other.gets, self.puts + other.puts)

    def __mul__(self, times: float) -> "Requests":
        return Requests(self.gets * times, self.puts * times)


def of_manifest(staged: int) -> Requests:
    """One manifest from delivery to archive, without its engine's requests. Counted.

    The first attempt succeeds, and one read finds the whole footer of each staged file, of rows or of rejects.
    """
    stats, reads, footers, copies = 4 + staged, 3, staged, 1 + staged
    records, listings, summaries = 7, 3, 1
    # Before it copies, boto3 asks for the size of the source.
    return Requests(gets=stats + reads + footers + copies, puts=records + listings + summaries + copies)


def of_manifest_in_place(outputs: int, rejects: int = 0) -> Requests:
    """The same if a table lists the files of rows where they were written, without the table's commits. Counted.

    Each staged file is looked for in its final place, and the folder of the manifest for what other attempts left.
    """
    staged = outputs + rejects
    copied = Requests(gets=1, puts=1) * outputs
    before = of_manifest(staged)
    return Requests(gets=before.gets + staged - copied.gets, puts=before.puts + 1 - copied.puts)


def of_inspected_file(file_bytes: int) -> Requests:
    """One pass over a file that is named with its ETag, by either engine. Counted.

    The native engine needs no other. The Spark engine inspects the file so, if Spark can then read it as it is.
    """
    ranges = max(1, math.ceil(file_bytes / RANGE_BYTES))
    return Requests(gets=ranges + (file_bytes >= RANGE_BYTES))  # the size of a long file is asked for first


def of_streamed_output(size_bytes: int) -> Requests:
    """One output of the native engine: a PUT, or a multipart upload with its start and end. Counted."""
    parts = math.ceil(size_bytes / STREAMED_PART_BYTES)
    return Requests(puts=1 if parts <= 1 else parts + 2)


OF_HEARTBEATS = Requests(gets=2, puts=1) * (HOUR_SECONDS / HEARTBEAT_INTERVAL_SECONDS)
"""An hour of one run. Counted."""


def of_shards(shards: int) -> Requests:
    """An hour in which each of several jobs knows of the others: it lists and reads the heartbeats of all. Counted."""
    of_one = Requests(gets=shards, puts=1) * (HOUR_SECONDS / REFRESH_SECONDS)
    return of_one * shards if shards > 1 else Requests()


OF_TRIGGER = Requests(gets=20, puts=15)
"""One micro-batch without its manifests: the watched prefix listed, the checkpoint written. Assumed."""


def of_conversion(manifests: float, outputs: float, files: float) -> Requests:
    """Manifests in the Spark engine and S3A, with all outputs and input files. From their sources.

    An output is a multipart upload of three parts, renamed (COPY) when its task commits, with look-ups in between. The
    driver then reads its footer (HEAD, GET).
    A file is looked up (HEAD), listed as a folder (LIST, HEAD), opened (HEAD), read (GET), and checked for a
    replacement at the end (HEAD).
    """
    of_manifests, of_outputs = Requests(gets=10, puts=8) * manifests, Requests(gets=10, puts=9) * outputs
    return of_manifests + of_outputs + Requests(gets=5, puts=1) * files
