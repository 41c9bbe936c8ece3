"""Writes the state of a job that has finished many manifests: their records and their archive."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.documents.document import Document
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import (
    Accepted,
    Attempt,
    Done,
    FileReport,
    FileStatus,
    OpenMarker,
    RecentCommit,
)
from compactor.core.layout import Layout, ManifestKey, digest
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.schema.schema import Column, SchemaVersion

FIRST_DAY = date(2025, 11, 1)
DAYS = 30
RUN_ID = "earlier"
ANY = ManifestKey("0001-01-01", "the-manifest-id")
"""Stands for any manifest, in records of which copies are made."""

_MOMENT = datetime(2025, 12, 1, tzinfo=UTC)
_FILES = 8  # per manifest; a real one has about 286, which does not depend on the number of manifests


def write_finished(layout: Layout, manifests: int, raw: str, *, days: int = DAYS) -> None:
    """Write all records that committed, published and archived manifests leave in the state.

    The record types make the first manifest; the others are copies of its text, and nothing is synced. That takes two
    minutes rather than an hour.

    Args:
        layout: Local places.
        manifests: Number of manifests.
        raw: Folder of the input that they name; its files need not exist.
        days: How many dates they are of.
    """
    _write(layout.schema(1), text_of(_schema()))
    pattern = [(uri, text_of(document)) for uri, document in finished(layout, ANY, raw)]
    manifest = dict(pattern)[layout.archived_manifest(ANY)]
    for number in range(manifests):
        date = (FIRST_DAY + timedelta(days=number * days // manifests)).isoformat()
        names = {ANY.id: f"{date}-{number:08d}", ANY.date: date}
        names[digest(manifest)] = digest(renamed(manifest, names))
        for uri, data in pattern:
            _write(renamed(uri.encode(), names).decode(), renamed(data, names))
    for slot in range(RECENT_SLOTS):
        _write(layout.recent(slot), text_of(_recent(slot)))


def write_decided(layout: Layout, manifest_id: str, raw: str) -> None:
    """Write what a driver leaves if it dies right after the outcome of a manifest was recorded.

    Args:
        layout: Local places.
        manifest_id: The manifest.
        raw: Folder of the input that it names.
    """
    key = ManifestKey(FIRST_DAY.isoformat(), manifest_id)
    for uri, data in finished(layout, key, raw):
        if uri not in {layout.done(key), layout.archived_manifest(key), layout.output_file(key, 0)}:
            _write(uri, text_of(data))
    _write(layout.open_marker(manifest_id), text_of(OpenMarker(manifest_id=key.id, date=key.date)))
    _write(f"{layout.staging_of_attempt(manifest_id, 1)}0.parquet", output())


def finished(layout: Layout, key: ManifestKey, raw: str) -> Iterator[tuple[str, Document | bytes]]:
    """Each record of a finished manifest, and its output, with its place."""
    uris = [f"{raw}/{key.date}-{key.id}-{part}.ndjson" for part in range(_FILES)]
    files = tuple(ManifestFile(uri=uri, size_bytes=3_670_016, etag="e") for uri in uris)
    manifest = Manifest(manifest_id=key.id, date=key.date, created_at=_MOMENT, files=files)
    data = manifest.to_json()
    yield (
        layout.accepted(key.id),
        Accepted(
            manifest_id=key.id,
            kind="manifest",
            date=key.date,
            digest=digest(data),
            source_uri=layout.manifest(key.id),
            accepted_at=_MOMENT,
            manifest=manifest,
        ),
    )
    yield (
        layout.attempt(key, 1),
        Attempt(manifest_id=key.id, number=1, run_id=RUN_ID, alone=True, started_at=_MOMENT),
    )
    yield layout.outcome(key), _commit(layout, key, uris)
    yield layout.done(key), Done(manifest_id=key.id, run_id=RUN_ID, done_at=_MOMENT)
    yield layout.archived_manifest(key), data
    yield layout.output_file(key, 0), output()


@cache
def output() -> bytes:
    """The output of each of these manifests: a row of each of its files."""
    file = pa.BufferOutputStream()
    columns = [column.name for column in _schema().columns]
    pq.write_table(pa.table({name: pa.array(["1"] * _FILES) for name in columns}), file)
    data: bytes = file.getvalue().to_pybytes()
    return data


def _commit(layout: Layout, key: ManifestKey, uris: list[str]) -> Commit:
    staged = f"{layout.staging_of_attempt(key.id, 1)}0.parquet"
    return Commit(
        manifest_id=key.id,
        date=key.date,
        attempt=1,
        run_id=RUN_ID,
        engine="spark",
        schema_version=1,
        outputs=[StagedFile(staged=staged, final=layout.output_file(key, 0), rows=_FILES, size_bytes=len(output()))],
        rejects=[],
        files=[
            FileReport(uri=uri, status=FileStatus.COMPACTED, size_bytes=3_670_016, etag="e", lines=1, records=1)
            for uri in uris
        ],
        max_line_bytes=1 << 24,
        max_decompressed_bytes=1 << 33,
        started_at=_MOMENT,
        decided_at=_MOMENT,
    )


def _recent(slot: int) -> RecentCommit:
    return RecentCommit(
        manifest_id=f"recent-{slot}",
        date=FIRST_DAY.isoformat(),
        decoded_bytes=1 << 30,
        input_bytes=1 << 30,
        output_bytes=1 << 28,
        output_files=2,
        input_files=286,
        records=1_000_000,
        rejected_lines=0,
        seconds=10,
        decided_at=_MOMENT,
        target_file_bytes=1 << 27,
        right_sized_bytes=1 << 28,
        small_bytes=0,
    )


def _schema() -> SchemaVersion:
    columns = tuple(Column(key=name, name=name, added_in=1) for name in ("id", "amount"))
    return SchemaVersion(version=1, created_at=_MOMENT, manifest_id="", columns=columns)


def text_of(document: Document | SchemaVersion | bytes) -> bytes:
    """A record as it is stored."""
    return document if isinstance(document, bytes) else document.model_dump_json().encode()


def renamed(data: bytes, names: Mapping[str, str]) -> bytes:
    """A text with other names in it."""
    for old, new in names.items():
        data = data.replace(old.encode(), new.encode())
    return data


def _write(uri: str, data: bytes) -> None:
    path = Path(uri)
    try:
        path.write_bytes(data)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
