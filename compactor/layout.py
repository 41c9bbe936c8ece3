"""Every place that the compactor writes to. What is inside an attempt's staging is the engine's own affair."""

import hashlib
import posixpath
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from string import Formatter

MANIFEST_ID = re.compile(r"(?!.*\.reason\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""What a manifest id may look like: it becomes part of file names, so no separators and no leading dot.

It does not end in `.reason`, or a dead letter would be taken for the reason of another one.
"""

KEEP_MARKER = "_keep"
"""A hidden object that keeps the watched prefix in being: the file source cannot start on a prefix without objects."""

_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_SLASHES = re.compile(r"/+")
_FOLDER_SEGMENT = re.compile(r"(?![._])[^\x00-\x1f\x7f*?\[\]{}\\]+")  # not hidden, and no pattern to Spark
_ID_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_ID_MAX_CHARACTERS = 160  # leaves room for the suffixes of redriven and set-aside manifests


def canonical(uri: str) -> str:
    """One spelling for each place, for comparing and not for showing.

    `s3a://` and `s3n://` become `s3://`; a local path loses `file://` and doubled slashes, which on S3 mean something.

    Args:
        uri: `s3://bucket/key`, `file:///path` or an absolute path.
    """
    scheme, separator, rest = uri.partition("://")
    if separator and scheme in {"s3a", "s3n"}:
        return f"s3://{rest}"
    if uri.startswith(("/", "file:///")):
        return _SLASHES.sub("/", uri.removeprefix("file://"))
    return uri


def is_s3(uri: str) -> bool:
    """Whether a URI is in S3 (else it is on a local disk)."""
    return canonical(uri).startswith("s3://")


def folder(uri: str) -> str:
    """The URI of a folder with exactly one `/` at its end."""
    return uri.rstrip("/") + "/"


def is_within(uri: str, prefix: str) -> bool:
    """Whether a URI lies in a folder, without climbing out of it through `.` or `..`."""
    path = canonical(uri)
    if any(segment in {".", ".."} for segment in path.split("/")):
        return False
    return path.startswith(folder(canonical(prefix)))


def base_name(uri: str) -> str:
    """The last segment of a URI, literally."""
    return posixpath.basename(uri)


def is_delivery(uri: str) -> bool:
    """Whether an object in the watched prefix is a delivery: no marker of this folder or of one below it."""
    return base_name(uri) not in {"", KEEP_MARKER}


def first_date(text: str) -> str | None:
    """The first real calendar day written as `yyyy-mm-dd` in a text, not inside a longer run of digits."""
    for match in _DATE.finditer(text):
        if is_date(match.group(1)):
            return match.group(1)
    return None


def is_date(text: str) -> bool:
    """Whether a text is a real calendar day, as `yyyy-mm-dd`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def date_of_file(uri: str, event_time: datetime) -> str:
    """The day a file belongs to: the first in its name, else in its key, else that of its event or object, in UTC."""
    return first_date(base_name(uri)) or first_date(canonical(uri)) or event_time.astimezone(UTC).date().isoformat()


def id_from_name(uri: str) -> str:
    """A manifest id made from an object's name: the name without `.json` where that is a valid id.

    Any other name is made safe, and a digest of the whole URI keeps two such names apart.
    """
    stem = base_name(uri).removesuffix(".json")
    if MANIFEST_ID.fullmatch(stem) and len(stem) <= _ID_MAX_CHARACTERS:
        return stem
    safe = _ID_UNSAFE.sub("_", stem).strip("._-")[:_ID_MAX_CHARACTERS] or "manifest"
    return f"{safe}-{digest(canonical(uri).encode())[:8]}"


def digest(data: bytes) -> str:
    """A fingerprint of some bytes, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    Attributes:
        manifests: The watched prefix.
        output: The prefix of the Parquet folders.
        state: The prefix of ledger, staging, rejects and the rest.
        output_folder: Template of a day's folder below `output`; holds `{date}` once.
        compression: Parquet codec; part of the names of output files.
    """

    manifests: str
    output: str
    state: str
    output_folder: str = "merged-parquet-{date}"
    compression: str = "snappy"

    @property
    def manifests_folder(self) -> str:
        return folder(self.manifests)

    @property
    def keep_marker(self) -> str:
        return self.manifests_folder + KEEP_MARKER

    def manifest(self, manifest_id: str) -> str:
        """Where a manifest to do is put."""
        return f"{self.manifests_folder}{manifest_id}.json"

    def archived_manifest(self, day: str, manifest_id: str) -> str:
        """Where a manifest goes when all of it is done."""
        return f"{folder(self.state)}archive/{day}/{manifest_id}.json"

    def failed_manifest(self, manifest_id: str) -> str:
        """Where the original of a dead letter is kept."""
        return f"{folder(self.state)}failed/{manifest_id}.json"

    def failure_reason(self, manifest_id: str) -> str:
        """Why a manifest became a dead letter."""
        return f"{folder(self.state)}failed/{manifest_id}.reason.json"

    @property
    def failed_folder(self) -> str:
        return f"{folder(self.state)}failed/"

    def accepted(self, manifest_id: str) -> str:
        """The record that ties an id to one manifest for good."""
        return f"{folder(self.state)}accepted/{manifest_id}.json"

    def open_marker(self, manifest_id: str) -> str:
        """There while a manifest was begun and is not done."""
        return f"{self.open_folder}{manifest_id}.json"

    @property
    def open_folder(self) -> str:
        return f"{folder(self.state)}open/"

    @property
    def ledger_folder(self) -> str:
        return f"{folder(self.state)}ledger/"

    def ledger_day(self, day: str) -> str:
        return f"{self.ledger_folder}{day}/"

    def ledger_records(self, day: str, manifest_id: str) -> str:
        """The folder of one manifest's records."""
        return f"{self.ledger_day(day)}{manifest_id}/"

    def attempt(self, day: str, manifest_id: str, number: int) -> str:
        return f"{self.ledger_records(day, manifest_id)}attempt-{number}.json"

    def attempt_failure(self, day: str, manifest_id: str, number: int) -> str:
        return f"{self.ledger_records(day, manifest_id)}attempt-{number}-failed.json"

    def outcome(self, day: str, manifest_id: str) -> str:
        return f"{self.ledger_records(day, manifest_id)}outcome.json"

    def done(self, day: str, manifest_id: str) -> str:
        return f"{self.ledger_records(day, manifest_id)}done.json"

    @property
    def staging_folder(self) -> str:
        return f"{folder(self.state)}staging/"

    def staging(self, manifest_id: str, attempt: int) -> str:
        """The folder of what one attempt writes before it is committed."""
        return f"{self.staging_of(manifest_id)}{attempt}/"

    def staging_of(self, manifest_id: str) -> str:
        """The folder of all attempts of one manifest."""
        return f"{self.staging_folder}{manifest_id}/"

    @property
    def schemas_folder(self) -> str:
        return f"{folder(self.state)}schemas/"

    def schema(self, version: int) -> str:
        return f"{self.schemas_folder}{version}.json"

    @property
    def recent_folder(self) -> str:
        return f"{folder(self.state)}recent/"

    def recent(self, slot: int) -> str:
        """One of a fixed number of places for summaries of the latest commits. A cache, not part of the ledger."""
        return f"{self.recent_folder}{slot:03d}.json"

    @property
    def checkpoints_folder(self) -> str:
        return f"{folder(self.state)}checkpoint/"

    def checkpoint(self, run_id: str) -> str:
        """Spark's checkpoint of one run."""
        return f"{self.checkpoints_folder}{run_id}"

    @property
    def claims_file(self) -> str:
        """The claims, where they are kept in SQLite."""
        return f"{folder(self.state)}claims.sqlite"

    def output_day(self, day: str) -> str:
        """The folder of a day's Parquet files."""
        return f"{folder(self.output)}{self.output_folder.format(date=day)}/"

    def output_file(self, day: str, manifest_id: str, part: int) -> str:
        """The final name of one output file; the same for every attempt."""
        return f"{self.output_day(day)}{manifest_id}-{part:05d}.{self.compression}.parquet"

    @property
    def rejects_folder(self) -> str:
        return f"{folder(self.state)}rejects/"

    def rejects_file(self, day: str, manifest_id: str, part: int) -> str:
        """The final name of one file of rejects; the same for every attempt."""
        return f"{self.rejects_folder}date={day}/{manifest_id}-{part:05d}.parquet"


def output_folder_faults(template: str) -> list[str]:
    """What is wrong with a template for a day's folder; nothing if it can be used."""
    try:
        fields = [found[1:] for found in Formatter().parse(template) if found[1] is not None]
    except ValueError as exc:
        return [f"not a template: {exc}"]
    if fields != [("date", "", None)]:
        return ["expected exactly one {date}, as in merged-parquet-{date} or date={date}"]
    if not all(_FOLDER_SEGMENT.fullmatch(segment) for segment in template.format(date="0001-01-01").split("/")):
        return [
            "expected a folder below the output, no part of it empty, hidden by _ or ., or with * ? [ ] { } \\ in it"
        ]
    return []
