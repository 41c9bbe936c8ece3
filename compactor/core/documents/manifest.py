"""Manifests: the files that are compacted together, and why a manifest can become a dead letter."""

from collections.abc import Container, Iterable, Iterator
from datetime import UTC, datetime

from pydantic import Field, NonNegativeInt, field_serializer

from compactor.core.documents.document import Document
from compactor.core.layout import ManifestKey

OUTSIDE = "outside_allowed_prefixes"

REASONS = {
    "empty": "the object holds no bytes",
    "too_big": "the object is larger than any manifest can be",
    "not_json": "the object is not one JSON document",
    "not_an_object": "the document is not a JSON object",
    "unknown_version": "this release does not read its version",
    "unknown_form": "the document has neither version nor fileLocations",
    "bad_id": "the manifest_id cannot be part of a file name",
    "bad_date": "the date is not a calendar day",
    "no_files": "it names no files",
    "too_many_files": "it names more than 100,000 files, or has JSON for more files",
    "bad_file": "an entry of files is malformed",
    "bad_uri": "a URI is not s3://bucket/key, file:///path, a path or a gap of a log, or is too long for one",
    OUTSIDE: "a URI is not below an allowed prefix",
    "duplicate_uri": "it names a file twice",
    "not_planned": "it names landed objects, gaps or copies of input that no plan or redrive gave to it",
    "id_already_used": "another manifest was accepted under this id",
    "hidden_name": "its name begins with _ or .",
    "nested": "it is in a folder below the watched prefix",
    "forbidden": "the store refused every file of it, attempt after attempt",
    "retries_exhausted": "every attempt failed",
}
"""Why a manifest becomes a dead letter: each reason with its meaning."""


UNKNOWN_SIZE_BYTES = 4 * 1024 * 1024
"""The assumed length of a file whose manifest gives none: typical for producers."""


class FileRange(Document):
    """The lines of a local file after those in earlier manifests, up to its last complete line.

    Attributes:
        continues: The file's name in the manifests with the earlier lines.
        from_byte: The start of a line.
        to_byte: The end of a line, after its line feed.
        lines_before: The number of lines before `from_byte`.
        digest_before: Digest of all bytes before `from_byte`; a recorded version has the same.
        digest: Digest of all bytes before `to_byte`.
        digest_within: Digest of the bytes from `from_byte` to `to_byte`. Who reads them again compares it.
    """

    continues: str
    from_byte: NonNegativeInt
    to_byte: NonNegativeInt
    lines_before: NonNegativeInt
    digest_before: str
    digest: str
    digest_within: str

    @property
    def size_bytes(self) -> int:
        return self.to_byte - self.from_byte


class ManifestFile(Document):
    """One input file, at the version that was listed or announced.

    Attributes:
        uri: Taken literally. A gap of a topic or stream has only one spelling.
        size_bytes: Its length, if known; for a grown file that of the range, for a gap 0.
        etag: Its version, if known; the id of the log for a gap.
        other_etags: Its other announced versions. The job reads the one that exists.
        event_time: When it was created.
        source_uri: For redriven lines, the file that they come from. They keep their line numbers: blank lines replace
            all others.
        rejected_as: Why these lines were rejected.
        dated_by: Which of `dates.RULES` dated its manifest; None if the writer gave the date.
        path_columns: Values from the folders of its path; None if there are none.
        range: The bytes to read, whatever the file has behind them; None for all.
        follows: The manifest with the last lines of the log that had this name before; None if there was none.
    """

    uri: str
    size_bytes: int | None = None
    etag: str | None = None
    other_etags: tuple[str, ...] | None = None
    event_time: datetime | None = None
    source_uri: str | None = None
    rejected_as: str | None = None
    dated_by: str | None = None
    path_columns: dict[str, str] | None = None
    range: FileRange | None = None
    follows: str | None = None

    @property
    def grown(self) -> FileRange | None:
        """The range of a grown file; None for a file that is read from its start."""
        return self.range if self.range is not None and self.range.from_byte else None

    @property
    def versions(self) -> Iterator["ManifestFile"]:
        """Each announced version as an entry of its own."""
        yield self
        yield from (self.model_copy(update={"etag": each, "other_etags": None}) for each in self.other_etags or ())

    def without(self, etags: Container[str | None]) -> "ManifestFile | None":
        """The entry without some of its versions; None if no other is left."""
        left = [each.etag for each in self.versions if each.etag not in etags]
        return self.model_copy(update={"etag": left[0], "other_etags": tuple(left[1:]) or None}) if left else None

    @property
    def origin_uri(self) -> str:
        """The file that its lines come from: itself, unless it holds redriven lines."""
        return self.source_uri or self.uri

    @property
    def weight_bytes(self) -> int:
        """Its length, or an assumed one, for balancing work."""
        return UNKNOWN_SIZE_BYTES if self.size_bytes is None else self.size_bytes


def each_version(files: Iterable[ManifestFile]) -> Iterator[ManifestFile]:
    """The announced versions of files, each as an entry of its own."""
    return (version for file in files for version in file.versions)


class Manifest(Document):
    """Files that are compacted together into the Parquet of one date. Immutable once written.

    Attributes:
        rejects_of: The manifest whose rejected lines this one redrives.
        listed_at: When a listing found its files, which counts as their arrival; None if they were announced.
        ignored_date: The writer's date, if it is outside the window of dates; not written.
    """

    version: int = 1
    manifest_id: str
    date: str
    created_at: datetime
    files: tuple[ManifestFile, ...]
    rejects_of: str | None = None
    listed_at: datetime | None = None
    ignored_date: str = Field(default="", exclude=True)

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)

    @field_serializer("created_at")
    def _second_precision(self, value: datetime) -> str:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"

    def to_json(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()
