"""The places of everything that the compactor writes. Only engines know the names within an attempt's staging."""

import hashlib
import posixpath
import re
from dataclasses import dataclass
from datetime import date
from string import Formatter
from typing import NamedTuple

from compactor.core.partitions import FOLDERS


class ManifestKey(NamedTuple):
    """One manifest. Keys sort by date first.

    Attributes:
        date: Date of its data, as `yyyy-mm-dd`.
        id: Unique among all manifests, whatever their dates.
    """

    date: str
    id: str


def ledger_order(key: ManifestKey) -> str:
    """Sorts manifests as the ledger lists them."""
    return f"{key.date}/{key.id}/"


MANIFEST_ID = re.compile(
    r"(?=.{1,230}\Z)(?!.*\.reason\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,199}"
    r"(-r[1-9]\d{0,8})?(-dup-[0-9a-f]{12})?(-r[1-9]\d{0,8})?"
)
"""The pattern of manifest ids. They become part of file names, hence no separators and no leading dot.

An id has up to 200 characters, and `duplicate_id` and `redriven_id` may append to it. With 230 in all, the longest name
made from it, that of an output file, stays within the 255 bytes that disks allow. It does not end in `.reason`, because
a dead letter with that id would look like the reason of a different one.
"""

KEEP_MARKER = "_keep"
"""A hidden object in the watched prefix: the file source cannot start on a prefix without objects."""

COLUMNS_DATE = "0001-01-01"
"""The date of the columns file. Input never has it, and its folder sorts before all other dates."""

_COLUMNS_NAME = "columns.parquet"
# The characters matched by \d depend on the Python release.
_DATE = re.compile(r"(?<![0-9])([0-9]{4}-[0-9]{2}-[0-9]{2})(?![0-9])")
_DATE_GROUP = r"(?P<date>\d{4}-\d{2}-\d{2})"
_PARQUET_NAME = re.compile(r"(?P<manifest_id>[^/]+)-\d{5,}(\.[a-z0-9]+)?\.parquet")
_IN_PLACE = rf"(?P<manifest_id>[^/]+)/(?P<attempt>(?:[1-9]\d*-)?[1-9]\d*)/{FOLDERS}[^/]+\.parquet\Z"
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOCAL = ("/", "file:///")
_SLASHES = re.compile(r"/+")
_FOLDER_SEGMENT = re.compile(r"(?![._])[^\x00-\x1f\x7f*?\[\]{}\\]+")  # not hidden, and not a Spark pattern
_ID_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NEW_ID = re.compile(r"\d{4}-\d\d-\d\d-[0-9a-f]{16}(-|$)")
_REDRIVEN_ID = re.compile(r"(?P<root>.+)-r(?P<number>[1-9]\d{0,8})")
_GENERATION = r"(?:-(?P<number>[1-9]\d{0,8}))?\.json"
_OUTCOME_NAME = re.compile(f"outcome{_GENERATION}")
_DONE_NAME = re.compile(f"done{_GENERATION}")
_PART = re.compile(r"-(?P<number>\d{5,})(?:\.[a-z0-9]+)?\.parquet\Z")
_REDRIVE_NAME = re.compile(r"redrive-(?P<number>[1-9]\d{0,8})\.json")
_SUMMARY_NAME = re.compile(r"(?P<number>\d{8,})\.summary")
_WHOLE_DATE = "_all-"  # no id begins like this
_ID_MAX_CHARACTERS = 160  # leaves room for the suffixes of redriven and refused manifests


def canonical(uri: str) -> str:
    """Normalise a URI to the spelling used in comparisons.

    `s3a://` and `s3n://` become `s3://`; a local path loses `file://` and doubled slashes. In S3, doubled slashes are
    significant and stay.

    Args:
        uri: `s3://bucket/key`, `file:///path` or an absolute path.
    """
    # Called some forty times per file; nearly all names are returned unchanged.
    if uri.startswith(_LOCAL):
        path = uri.removeprefix("file://")
        return _SLASHES.sub("/", path) if "//" in path else path
    if uri.startswith(("s3a://", "s3n://")):
        return f"s3://{uri[len('s3a://') :]}"
    return uri


def is_local(uri: str) -> bool:
    """Whether a URI is a file on a local disk."""
    return uri.startswith(_LOCAL)


def is_s3(uri: str) -> bool:
    """Whether a URI is in S3 rather than on a local disk."""
    return uri.startswith(("s3://", "s3a://", "s3n://"))


def folder(uri: str) -> str:
    """The URI of a folder, with exactly one `/` at its end."""
    return uri.rstrip("/") + "/"


def index_folder(log: str) -> str:
    """The index folder of a log, given the log's folder."""
    return f"{log.rstrip('/')}-index/"


def is_within(uri: str, prefix: str) -> bool:
    """Whether a URI lies in a folder and does not climb out of it through `.` or `..`."""
    path = canonical(uri)
    if not path.startswith(folder(canonical(prefix))):
        return False
    may_climb = "./" in path or path.endswith(("/.", "/.."))
    return not may_climb or not any(segment in {".", ".."} for segment in path.split("/"))


def base_name(uri: str) -> str:
    """The last segment of a URI."""
    return posixpath.basename(uri)


def is_text(uri: str) -> bool:
    """Whether a name is Unicode text. Python decodes a local name that is not UTF-8 to lone surrogates."""
    return uri.isascii() or not _SURROGATE.search(uri)


def is_delivery(uri: str) -> bool:
    """Whether an object in the watched prefix is a delivered manifest, not a folder marker."""
    return base_name(uri) not in {"", KEEP_MARKER}


def probe(place: str, name: str) -> str:
    """The URI of a test object in a folder, ignored by the job and by readers of tables.

    Several folders deep, because the local store removes empty folders after a deletion, but not the tested one.
    """
    return f"{folder(place)}_doctor/probe/{name}/{KEEP_MARKER}"


def is_seen_by_stream(name: str, size_bytes: int) -> bool:
    """Whether Spark's file source delivers an object: it skips hidden, nested and empty ones.

    Args:
        name: Relative to the watched prefix.
        size_bytes: Its length.
    """
    return bool(size_bytes) and "/" not in name and not name.startswith(("_", "."))


def first_date(text: str) -> str | None:
    """The first calendar day written as `yyyy-mm-dd` in a text, outside longer runs of digits."""
    for match in _DATE.finditer(text):
        if is_date(match.group(1)):
            return match.group(1)
    return None


def is_date(text: str) -> bool:
    """Whether a text is a calendar day, as `yyyy-mm-dd`."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def id_from_name(uri: str) -> str:
    """The manifest id for an object's name: the name without `.json` if that is a valid id.

    Any other name is made safe and gets a digest of the whole URI, so that two such names stay distinct.
    """
    stem = base_name(uri).removesuffix(".json")
    if MANIFEST_ID.fullmatch(stem) and len(stem) <= _ID_MAX_CHARACTERS:
        return stem
    safe = _ID_UNSAFE.sub("_", stem).strip("._-")[:_ID_MAX_CHARACTERS] or "manifest"
    # A name on a disk need not be UTF-8; Python decodes other bytes to lone surrogates.
    return f"{safe}-{digest(canonical(uri).encode(errors='surrogatepass'))[:8]}"


def duplicate_id(manifest_id: str, fingerprint: str) -> str:
    """The id of a refused manifest whose own id is taken; a digest of its bytes makes it unique.

    An id that is too long for this is truncated and gets a digest of itself.
    """
    ending = f"-dup-{fingerprint[:12]}"
    if MANIFEST_ID.fullmatch(manifest_id + ending):
        return manifest_id + ending
    return f"{manifest_id[:_ID_MAX_CHARACTERS]}-{digest(manifest_id.encode())[:8]}{ending}"


def is_of_new(manifest_id: str) -> bool:
    """Whether a planner made an id, or a redrive or duplicate extended such an id."""
    return _NEW_ID.match(manifest_id) is not None


def redriven_id(root: str, number: int) -> str:
    """The id of the nth redrive of a manifest and its successors."""
    return f"{root}-r{number}"


def root_id(manifest_id: str) -> str:
    """The original id behind one from `redriven_id`; any other id is its own root."""
    found = _REDRIVEN_ID.fullmatch(manifest_id)
    return found["root"] if found else manifest_id


def number_of_redrive(manifest_id: str, root: str) -> int:
    """The number of a redrive, from its id and its root; 0 for any other id."""
    found = _REDRIVEN_ID.fullmatch(manifest_id)
    return int(found["number"]) if found and found["root"] == root else 0


def redriven_owner(uri: str, redriven_folder: str) -> str | None:
    """The manifest for which a file of redriven lines was written; None for a file elsewhere."""
    if not is_within(uri, redriven_folder):
        return None
    return canonical(uri).removeprefix(canonical(redriven_folder)).partition("/")[0]


def schema_number(uri: str) -> int | None:
    """The number in the name of a schema version; None for any other object."""
    name = base_name(uri).removesuffix(".json")
    # Other scripts have digits too, and `int` accepts some of them.
    return int(name) if name.isascii() and name.isdigit() else None


def outcome_generation(name: str) -> int | None:
    """The generation in an outcome's name; None for any other record."""
    return _number_in(_OUTCOME_NAME, name)


def done_generation(name: str) -> int | None:
    """The generation in the name of a done record; None for any other record."""
    return _number_in(_DONE_NAME, name)


def done_name(generation: int) -> str:
    """The name of a generation's done record."""
    return f"done{_of_generation('-', generation)}.json"


def part_number(uri: str) -> int:
    """The part number in a final name given by the compactor; 0 for any other name."""
    found = _PART.search(uri)
    return int(found["number"]) if found else 0


def redrive_number(name: str) -> int | None:
    """The number in a redrive record's name; None for any other record."""
    return _number_in(_REDRIVE_NAME, name)


def _number_in(pattern: re.Pattern[str], name: str) -> int | None:
    found = pattern.fullmatch(name)
    return int(found["number"] or 1) if found else None


def digest(data: bytes) -> str:
    """The SHA-256 of some bytes, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class _Place:
    """A fixed place below the state."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, layout: "Layout", _: type["Layout"]) -> str:
        return folder(layout.state) + self._name


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is.

    Attributes:
        manifests: The watched prefix.
        output: The prefix of the Parquet folders.
        state: The prefix of ledger, rejects and other state.
        staging: The prefix of staging; if empty, `staging` below `state`.
        pending: The prefix of pending parts; if empty, `pending` below `state`.
        output_folder: Template for a date's folder below `output`; contains `{date}` once.
        compression: Parquet codec; part of the names of output files.
    """

    manifests: str
    output: str
    state: str
    staging: str = ""
    pending: str = ""
    output_folder: str = "merged-parquet-{date}"
    compression: str = "snappy"

    accepted_folder = _Place("accepted/")
    archive_folder = _Place("archive/")
    changing_folder = _Place("changing/")  # changes in progress
    checkpoints_folder = _Place("checkpoint/")
    claims_file = _Place("claims.sqlite")  # claims, if kept in SQLite
    claims_folder = _Place("claims/")  # claims, if kept in a journal
    closed_totals = _Place("closed.json")  # totals of the summaries. A cache
    closed_folder = _Place("closed/")  # the log of closed dates
    # Exists once every manifest on record is open, marked or summarised, so that summaries can be trusted.
    closing_begun = _Place("closing.json")
    breaker_closed = _Place("control/breaker-closed.json")  # when an operator last closed the control plane's breaker
    job_seen = _Place("control/job-seen.json")  # the control plane's observations of the job
    shard_count = _Place("control/shard-count.json")  # how many shards run, if their number changes by itself
    notices = _Place("control/notices.json")  # latest notices of the control plane
    failed_folder = _Place("failed/")
    replaced_folder = _Place("replaced/")
    logs_folder = _Place("logs/")  # landed log data, and the drafts of manifests
    ledger_folder = _Place("ledger/")
    open_folder = _Place("open/")
    recent_folder = _Place("recent/")
    # The compactor's own copies of input: redriven lines, and landed records of streams.
    redriven_folder = _Place("redriven/")
    rejects_folder = _Place("rejects/")
    runs_folder = _Place("runs/")
    schemas_folder = _Place("schemas/")
    seen_file = _Place("seen.sqlite")  # the last state of local input files seen by `compact`: a cache, in SQLite
    table_folder = _Place("table/")  # the records of a table sink
    # Metadata files of the table that an erasure removes once no snapshot needs them.
    doomed_metadata = _Place("table/doomed.json")
    finished_batches = _Place("table/finished.json")  # the batch up to which every manifest is done
    held_folder = _Place("table/held/")  # manifests that the table's catalog refuses
    table_progress_folder = _Place("table/progress/")  # the jobs' table progress
    landing_folder = _Place("landing/")  # the jobs' landing progress
    # Marks of manifests on record that are in no summary, in a folder per date.
    unsummarised_folder = _Place("unsummarised/")

    @property
    def manifests_folder(self) -> str:
        return folder(self.manifests)

    @property
    def keep_marker(self) -> str:
        return self.manifests_folder + KEEP_MARKER

    def manifest(self, manifest_id: str) -> str:
        """The delivery place of a manifest."""
        return f"{self.manifests_folder}{manifest_id}.json"

    def archived_manifest(self, key: ManifestKey) -> str:
        """The place of a finished manifest."""
        return f"{self.archive_folder_of(key.date)}{key.id}.json"

    def archive_folder_of(self, date: str) -> str:
        return f"{self.archive_folder}{date}/"

    def archived_key(self, uri: str) -> ManifestKey | None:
        """The key of an archived manifest; None for any other object."""
        date, _, name = canonical(uri).removeprefix(canonical(self.archive_folder)).partition("/")
        manifest_id = name.removesuffix(".json")
        is_one = is_date(date) and manifest_id != name and MANIFEST_ID.fullmatch(manifest_id)
        return ManifestKey(date, manifest_id) if is_one else None

    def failed_manifest(self, manifest_id: str) -> str:
        """A dead letter's original."""
        return f"{folder(self.state)}failed/{manifest_id}.json"

    def failure_reason(self, manifest_id: str) -> str:
        """The reason why a manifest became a dead letter."""
        return f"{folder(self.state)}failed/{manifest_id}.reason.json"

    def accepted(self, manifest_id: str) -> str:
        """The record that binds an id to one manifest."""
        return f"{self.accepted_folder}{manifest_id}.json"

    def open_marker(self, manifest_id: str, generation: int = 1, attempt: int = 0) -> str:
        """Marks a manifest as open; a rebuild's marker includes its attempt, so that only that attempt removes it."""
        number = f"-{attempt}" if attempt else ""  # guard: each rebuild attempt has its own marker
        return f"{self.open_folder}{manifest_id}{_of_generation('~', generation)}{number}.json"

    def open_rebuilds(self, manifest_id: str) -> str:
        """The common start of the markers of all rebuilds of a manifest."""
        return f"{self.open_folder}{manifest_id}~"

    def opened_generation(self, uri: str) -> int:
        return int(base_name(uri).removesuffix(".json").partition("~")[2].partition("-")[0] or 1)

    def opened_id(self, uri: str) -> str:
        return base_name(uri).removesuffix(".json").partition("~")[0]

    @property
    def pending_folder(self) -> str:
        return folder(self.pending or f"{folder(self.state)}pending")

    def pending_part(self, part_id: str) -> str:
        """Claimed files awaiting sealing into a manifest."""
        return f"{self.pending_folder}{part_id}.json"

    def ledger_folder_of(self, date: str) -> str:
        return f"{self.ledger_folder}{date}/"

    def ledger_records(self, key: ManifestKey) -> str:
        return f"{self.ledger_folder_of(key.date)}{key.id}/"

    def attempt(self, key: ManifestKey, number: int) -> str:
        return f"{self.ledger_records(key)}attempt-{number}.json"

    def attempt_failure(self, key: ManifestKey, number: int) -> str:
        return f"{self.ledger_records(key)}attempt-{number}-failed.json"

    def intake_folder(self, place: str) -> str:
        """Lists the runs that read a large delivered object, or died while reading it."""
        return f"{folder(self.state)}intake/{place}/"

    def folded_attempts(self, key: ManifestKey, upto: int) -> str:
        return f"{self.ledger_records(key)}attempts-to-{upto}.json"

    def verified_commit(self, manifest_id: str, attempt: int, generation: int = 1) -> str:
        """The commit of a verified attempt before it takes effect."""
        return f"{self.staging_of_attempt(manifest_id, attempt, generation)}verified.json"

    def outcome(self, key: ManifestKey, generation: int = 1) -> str:
        """The outcome of one generation. Each rebuild is a generation, and its outcome supersedes earlier ones."""
        return f"{self.ledger_records(key)}outcome{_of_generation('-', generation)}.json"

    def done(self, key: ManifestKey, generation: int = 1) -> str:
        return f"{self.ledger_records(key)}{done_name(generation)}"

    def redrive(self, root: ManifestKey, number: int) -> str:
        """A redrive, stored with the root's records even if a successor was redriven."""
        return f"{self.ledger_records(root)}redrive-{number}.json"

    def redriven_inputs(self, manifest_id: str, run_id: str) -> str:
        """A run's folder for the lines of a redriven manifest; two runs may try the same id."""
        return f"{self.redriven_folder}{manifest_id}/{run_id}/"

    def landing_progress(self, scheme: str, path: str) -> str:
        return f"{self.landing_folder}{scheme}/{path}.json"

    def landed_inputs(self, manifest_id: str) -> str:
        """Folder of the landed log records for a manifest. No run has this id."""
        return f"{self.redriven_folder}{manifest_id}/landed/"

    @property
    def staging_folder(self) -> str:
        return folder(self.staging or f"{folder(self.state)}staging")

    def self_test(self, run_id: str) -> str:
        """Folder where a run converts a sample to test itself. No manifest has this id."""
        return f"{self.staging_folder}_self-test/{run_id}/"

    def staging_of_attempt(self, manifest_id: str, attempt: int, generation: int = 1) -> str:
        """The output of an attempt before its commit."""
        return f"{self.staging_of(manifest_id)}{_attempt_folder(attempt, generation)}"

    def staged_generation(self, uri: str) -> int:
        return _generation_of(uri.removeprefix(self.staging_folder).split("/")[1])

    def staging_of(self, manifest_id: str) -> str:
        return f"{self.staging_folder}{manifest_id}/"

    def unsummarised(self, key: ManifestKey, generation: int = 1) -> str:
        """Marks a generation that is done but in no summary of its date."""
        return f"{self.unsummarised_folder}{key.date}/{key.id}{_of_generation('~', generation)}.json"

    def unsummarised_date(self, date: str, run_id: str) -> str:
        """Marks a date whose manifests may lack marks, so that all of its records must be read."""
        return f"{self.unsummarised_folder}{date}/{_WHOLE_DATE}{run_id}.json"

    def unsummarised_mark(self, uri: str) -> tuple[ManifestKey, int] | None:
        """The key and generation of a mark; a key without an id for a whole date; None for any other object."""
        date, _, name = uri.removeprefix(self.unsummarised_folder).partition("/")
        stem, _, generation = name.removesuffix(".json").partition("~")
        if not is_date(date) or stem == name:
            return None
        if stem.startswith(_WHOLE_DATE):
            return ManifestKey(date, ""), 0
        is_one = MANIFEST_ID.fullmatch(stem) and (not generation or generation.isdecimal())
        return (ManifestKey(date, stem), int(generation or 1)) if is_one else None

    @property
    def closed_names(self) -> str:
        """Index of file names in summaries. A cache."""
        return f"{index_folder(self.closed_folder)}names/"

    @property
    def closed_versions(self) -> str:
        """Index of file versions in summaries. A cache."""
        return f"{index_folder(self.closed_folder)}versions/"

    def summary(self, place: int) -> str:
        """A summary in the log of closed dates, by its place, starting at 1."""
        return f"{self.closed_folder}{place:08d}.summary"

    def summary_place(self, uri: str) -> int | None:
        """The place of a summary in the log; None for any other object."""
        return _number_in(_SUMMARY_NAME, base_name(uri))

    def replaced_file(self, uri: str) -> str:
        """The record of an input file that was replaced."""
        return f"{self.replaced_folder}{digest(canonical(uri).encode(errors='surrogateescape'))[:32]}.json"

    def changes_folder(self, why: str) -> str:
        """All changes of a kind, in a folder per date or manifest."""
        return f"{folder(self.state)}changes/{why}/"

    def change(self, why: str, about: str, name: str) -> str:
        return f"{self.changes_folder(why)}{about}/{name}.json" if about else f"{self.changes_folder(why)}{name}.json"

    def changing(self, why: str, about: str, name: str) -> str:
        """A copy of a change, kept until it has fully taken effect."""
        return f"{self.changing_folder}{why}~{about}~{name}.json"

    def schema(self, version: int) -> str:
        return f"{self.schemas_folder}{version}.json"

    @property
    def table_owner(self) -> str:
        """The value of the owner property in this state's table."""
        return canonical(folder(self.state))

    def table_batch(self, number: int) -> str:
        """A batch of the table, by its number, starting at 1."""
        return f"{self.table_folder}batches/{number:08d}.json"

    def refused_batch(self, number: int) -> str:
        """Records that the table skipped a batch."""
        return f"{self.table_folder}refused/{number:08d}.json"

    @property
    def merged_folder(self) -> str:
        """Merged files: below the output for readers of the table, hidden from readers of folders."""
        return f"{folder(self.output)}_table/merged/"

    def merged_file(self, merge_id: str, part: int) -> str:
        """A merged file, by its number, starting at 1."""
        return f"{self.merged_folder}{merge_id}-{part:05d}.{self.compression}.parquet"

    def merge_of(self, uri: str) -> str:
        """The merge id in a file's name; empty for any other file."""
        place, base = canonical(uri), canonical(self.merged_folder)
        named = _PARQUET_NAME.fullmatch(place.removeprefix(base)) if place.startswith(base) else None
        return named["manifest_id"] if named else ""

    def held(self, key: ManifestKey, generation: int = 1) -> str:
        """Records that a manifest's generation is held back."""
        return f"{self.held_folder}{key.id}{_of_generation('~', generation)}.json"

    def table_progress(self, shard: int) -> str:
        """A job's table progress, by its shard number, starting at 1. Not part of the ledger."""
        return f"{self.table_progress_folder}{shard}.json"

    def recent(self, slot: int) -> str:
        """One slot in the ring of recent commit summaries. A cache, not part of the ledger."""
        return f"{self.recent_folder}{slot:03d}.json"

    def checkpoint(self, run_id: str) -> str:
        return f"{self.checkpoints_folder}{run_id}"

    def run(self, run_id: str) -> str:
        return f"{self.runs_folder}{run_id}.json"

    def stop_request(self, run_id: str) -> str:
        """Asks a run to end after the manifests in flight."""
        return f"{self.runs_folder}{run_id}.stop"

    def last_run(self, task: str) -> str:
        """The latest result of a recurring task. Not part of the ledger."""
        return f"{folder(self.state)}tasks/{task.replace(' ', '-')}.json"

    def output_folder_of(self, date: str) -> str:
        return f"{folder(self.output)}{self.output_folder.format(date=date)}/"

    def output_file(self, key: ManifestKey, part: int, partition: str = "") -> str:
        """The final name of an output file, identical for every attempt.

        Args:
            key: The manifest.
            part: The number of the file, unique within the manifest.
            partition: The folders of its partition below the date's folder; see `core.partitions.folders`.
        """
        return f"{self.output_folder_of(key.date)}{partition}{key.id}-{part:05d}.{self.compression}.parquet"

    @property
    def columns_folder(self) -> str:
        """The folder of the columns file. It sorts before all dates, so readers see it first."""
        return self.output_folder_of(COLUMNS_DATE)

    def columns_file(self, partition: str = "") -> str:
        """A file without rows that has every output column; `partition` as in `output_file`."""
        return f"{self.columns_folder}{partition}{_COLUMNS_NAME}"

    def is_columns_file(self, uri: str) -> bool:
        return base_name(uri) == _COLUMNS_NAME and is_within(uri, self.columns_folder)

    def in_place(self, key: ManifestKey, attempt: int, generation: int = 1) -> str:
        """Folder where an attempt writes rows under their final names."""
        return f"{self.in_place_of(key)}{_attempt_folder(attempt, generation)}"

    def in_place_of(self, key: ManifestKey) -> str:
        return f"{self.output_folder_of(key.date)}{key.id}/"

    def in_place_attempt(self, uri: str) -> tuple[ManifestKey, int] | None:
        """The manifest and generation of an attempt's in-place file; None for any other file."""
        found = re.compile(f"{self._date_places}/{_IN_PLACE}").match(canonical(uri))
        if found is None or not is_date(found["date"]) or not MANIFEST_ID.fullmatch(found["manifest_id"]):
            return None
        return ManifestKey(found["date"], found["manifest_id"]), _generation_of(found["attempt"])

    def output_owner(self, uri: str) -> ManifestKey | None:
        """The manifest that a file below `output` belongs to, by its name.

        The id is empty for a name not given by the compactor. None outside the folders of dates and for the columns
        file.
        """
        if self.is_columns_file(uri):
            return None
        in_place = self.in_place_attempt(uri)
        return in_place[0] if in_place else _owner(uri, re.compile(f"{self._date_places}/{FOLDERS}"))

    @property
    def _date_places(self) -> str:
        """A pattern for the folders of dates, without the final `/`."""
        before, after = (re.escape(part) for part in self.output_folder.split("{date}"))
        return f"{re.escape(canonical(folder(self.output)))}{before}{_DATE_GROUP}{after}"

    def rejects_file(self, key: ManifestKey, part: int) -> str:
        """The final name of a rejects file, identical for every attempt."""
        return f"{self.rejects_folder_of(key.date)}{key.id}-{part:05d}.parquet"

    def rejects_folder_of(self, date: str) -> str:
        return f"{self.rejects_folder}date={date}/"

    def rejects_owner(self, uri: str) -> ManifestKey | None:
        """The manifest that a file below `rejects_folder` belongs to, as for `output_owner`."""
        return _owner(uri, re.compile(f"{re.escape(canonical(self.rejects_folder))}date={_DATE_GROUP}/"))


def holds_raw_lines(uri: str, state: str) -> bool:
    """Whether an object below the state holds lines of the input: rejects, redriven lines, repaired copies.

    In staging, any folder may, except the engines' folder `out`: that becomes output, which has its own readers.
    """
    place, base = canonical(uri), canonical(folder(state))
    if not place.startswith(base):
        return False
    kind, *names = place.removeprefix(base).split("/")
    is_raw = kind in {"rejects", "redriven"} or (kind == "staging" and "out" not in names[2:-1])
    return is_raw and bool(names)


def is_data(uri: str) -> bool:
    """Whether readers treat an object as data: not a folder marker, and not hidden by `_` or `.`."""
    name = base_name(uri)
    return name.endswith(".parquet") or not (name.startswith(("_", ".")) or name.endswith("_$folder$") or not name)


def _attempt_folder(attempt: int, generation: int) -> str:
    return f"{'' if generation == 1 else f'{generation}-'}{attempt}/"


def _generation_of(attempt_folder: str) -> int:
    generation, separator, _ = attempt_folder.partition("-")
    return int(generation) if separator and generation.isdecimal() else 1


def _of_generation(separator: str, generation: int) -> str:
    return "" if generation == 1 else f"{separator}{generation}"


def _owner(uri: str, date_folder: re.Pattern[str]) -> ManifestKey | None:
    found = date_folder.match(canonical(uri))
    if found is None or not is_date(found["date"]):
        return None
    named = _PARQUET_NAME.fullmatch(canonical(uri)[found.end() :])
    return ManifestKey(found["date"], named["manifest_id"] if named else "")


def output_folder_faults(template: str) -> list[str]:
    """The faults of an output folder template; empty if it can be used."""
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
