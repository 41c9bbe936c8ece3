"""Formats of stored records: which this release reads and writes of each kind, and how it recognises a newer one.

Processes of two releases may work on one state for hours. Within a format, a release may add keys that have a default
and that a reader may ignore. Any other change, such as a new word of an enumeration, makes a new format. A release
writes a format only if the release before it reads that format: the change of a format takes two releases.

A record in a format from 2 names the format and the release that wrote it, so that a release that cannot read it says
what to upgrade, and leaves it as it is. A manifest names its format beside its version. Other writers of manifests do
not: a version of theirs that no release reads makes a dead letter.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

FORMAT_KEY = "record_format"
"""The key of a record's format; without it, the format is 1."""

RELEASE_KEY = "record_release"
"""The key of the release that wrote a record in a format from 2."""

_RELEASE = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
_FORMAT_BYTES = FORMAT_KEY.encode()


@dataclass(frozen=True, slots=True)
class Format:
    """Formats of one kind of record.

    Attributes:
        reads: The newest format that this release reads; it reads all earlier ones, too.
        writes: The format that this release writes.
    """

    reads: int = 1
    writes: int = 1


FORMATS: Mapping[str, Format] = {
    "Accepted": Format(),
    "Dismissal": Format(),
    "Attempt": Format(),
    "AttemptFailure": Format(),
    "AttemptsFolded": Format(),
    "BreakerClosed": Format(),
    "ClaimsEntry": Format(),
    "ClosedDate": Format(),
    "ClosedTotals": Format(),
    "ClosingBegun": Format(),
    "Done": Format(),
    "DoomedMetadata": Format(),
    "Erasure": Format(),
    "ErasureDone": Format(),
    "Expired": Format(),
    "FinishedBatches": Format(),
    "HeldManifest": Format(),
    "JobSeen": Format(),
    "KafkaLink": Format(),
    "KafkaOrigin": Format(),
    "KinesisDraft": Format(),
    "KinesisFirstPlan": Format(),
    "KinesisLink": Format(),
    "KinesisLoss": Format(),
    "KinesisOrigin": Format(),
    "KinesisProgress": Format(),
    "KinesisSeen": Format(),
    "LastCleaning": Format(),
    "LastClosing": Format(),
    "LastUpkeep": Format(),
    "Manifest": Format(reads=2),
    "OpenMarker": Format(),
    "Outcome": Format(),
    "RecentCommit": Format(),
    "Redrive": Format(),
    "RefusedBatch": Format(),
    "ReleasedParts": Format(),
    "RunHeartbeat": Format(),
    "SchemaVersion": Format(),
    "TableBatch": Format(),
    "TableMerge": Format(),
    "TableProgress": Format(),
    "TopicProgress": Format(),
    "Told": Format(),
}
"""The formats of each kind, by the name of its model. An outcome is a commit or a dead letter.

Heartbeats, summaries and the control plane's own records stay in format 1, because both releases overwrite them.
"""


def newer_format(data: bytes, kind: str) -> str:
    """What a record is that only a newer release reads, in words; empty if this release reads its format.

    Args:
        data: The stored bytes, which need not be a record at all.
        kind: One of `FORMATS`.
    """
    if _FORMAT_BYTES not in data:  # nearly always, and much faster than to parse a large record twice
        return ""
    try:
        return newer_document(orjson.loads(data), kind)
    except orjson.JSONDecodeError:
        return ""


def newer_document(document: object, kind: str) -> str:
    """What a document is that only a newer release reads; see `newer_format`.

    Args:
        document: As JSON was parsed.
        kind: One of `FORMATS`.
    """
    found = document.get(FORMAT_KEY) if isinstance(document, dict) else None
    reads = FORMATS[kind].reads
    if not isinstance(document, dict) or not isinstance(found, int) or isinstance(found, bool) or found <= reads:
        return ""
    release = document.get(RELEASE_KEY)
    is_named = isinstance(release, str) and _RELEASE.fullmatch(release)
    needed = f"release {release}" if is_named else "the release that wrote it"
    return f"{kind} has format {found}, and this release reads up to format {reads}; deploy {needed} or a later one"
