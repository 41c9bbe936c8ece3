"""Parses manifests in every accepted form. Time and memory are bounded, however hostile the bytes are."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import ValidationError

from compactor.core import layout
from compactor.core.documents.manifest import OUTSIDE, FileRange, Manifest, ManifestFile
from compactor.core.errors import ManifestError
from compactor.core.inputs.dates import DEFAULT_WINDOW, RULES, DateWindow, NamedDate, named_date
from compactor.core.inputs.source_places import (
    MAX_PATH_COLUMNS,
    are_path_columns,
    exclusion,
    path_columns,
)
from compactor.core.logs.names import LogGap, is_log

MAX_MANIFEST_FILES = 100_000
MAX_MANIFEST_BYTES = 64 * 1024 * 1024

_ID_MAX_CHARACTERS = 200
_SHOWN_MAX_CHARACTERS = 120
_FILE_MAX_BYTES = 4096  # of one file in a manifest: its URI, its etag and the names of the fields
_HEAD_MAX_BYTES = 64 * 1024  # of everything else
_VALUES_PER_FILE = 16  # a file has a comma for each of its fields, those of a range included, and three brackets
_MIN_VALUES = 100_000
_KEY_MAX_BYTES = 1024  # of a key [S3 user guide]
_BUCKET_MAX_CHARACTERS = 255  # of an old bucket in us-east-1; 63 of any other [S3 user guide]
_PATH_MAX_BYTES = 4096  # Linux, PATH_MAX
_ETAG_MAX_CHARACTERS = 1024
_ETAG = re.compile(rf"[\x20-\x7e]{{0,{_ETAG_MAX_CHARACTERS}}}")  # an ETag is sent in a header of a request


@dataclass(frozen=True, slots=True)
class ManifestRules:
    """What a manifest may name, by the settings.

    Attributes:
        max_files: The most files.
        dates: The dates that it, or the names of its files, may give.
        hive_keys: Whether folders such as `country=DE` give their files columns.
        exclude: Patterns of files that are no input; see `exclusion`.
    """

    max_files: int = MAX_MANIFEST_FILES
    dates: DateWindow = DEFAULT_WINDOW
    hive_keys: bool = False
    exclude: tuple[str, ...] = ()

    def excludes(self, uri: str) -> bool:
        """Whether a file is no input, because a pattern excludes it."""
        return bool(self.exclude) and exclusion(self.exclude).fullmatch(layout.canonical(uri)) is not None

    @property
    def max_bytes(self) -> int:
        """The largest length of a manifest: at most what that many files take."""
        return min(MAX_MANIFEST_BYTES, self.max_files * _FILE_MAX_BYTES + _HEAD_MAX_BYTES)

    def with_path_columns(self, file: ManifestFile) -> ManifestFile:
        """The file with the columns that its path gives, unless it has some already or paths give none."""
        if not self.hive_keys or file.path_columns is not None:
            return file
        return file.model_copy(update={"path_columns": path_columns(file.origin_uri) or None})

    def check_length(self, uri: str, length_bytes: int) -> None:
        """Check the length of a manifest before it is read.

        Raises:
            ManifestError: It is larger than any manifest can be.
        """
        if length_bytes > self.max_bytes:
            raise ManifestError("too_big", f"{uri}: {length_bytes} bytes, expected at most {self.max_bytes}")


DEFAULT_RULES: ManifestRules = ManifestRules()


def parse_manifest(
    data: bytes,
    *,
    uri: str,
    modified_at: datetime,
    allowed_prefixes: Sequence[str],
    redriven_folder: str = "",
    rules: ManifestRules = DEFAULT_RULES,
) -> Manifest:
    """Read the bytes of a manifest, in any of the accepted forms.

    Args:
        data: The object's bytes.
        uri: Where the object is; its name gives the id of the `fileLocations` form.
        modified_at: Time of the object's last write: its arrival, and the last resort for a date.
        allowed_prefixes: Folders that input may be in.
        redriven_folder: Where the files of redriven lines are; a manifest may name those that were written for it.
        rules: What it may name.

    Raises:
        ManifestError: It cannot be accepted; the reason is one of `REASONS`.
    """
    rules.check_length(uri, len(data))
    document = _document(data, uri, rules)
    if "version" in document:
        manifest = _versioned(document, uri, modified_at, rules)
    elif "fileLocations" in document:
        manifest = _file_locations(document, uri, modified_at, rules)
    else:
        raise ManifestError(
            "unknown_form", f'{uri}: neither "version" nor "fileLocations" in it; its keys are {_shown(list(document))}'
        )
    _check_files(manifest, uri, allowed_prefixes, redriven_folder)
    manifest = _without_false_origins(manifest, redriven_folder)
    files = tuple(
        file if _is_landed(file, redriven_folder) else rules.with_path_columns(file) for file in manifest.files
    )
    return manifest.model_copy(update={"files": files})


def _document(data: bytes, uri: str, rules: ManifestRules) -> dict[str, Any]:
    if not data.strip():
        raise ManifestError("empty", f"{uri}: {len(data)} bytes, none of them content; expected a JSON object")
    # Each JSON value but the first follows one of these signs or a colon, and each colon follows a key. So their number
    # bounds what the parser allocates. Strings hold some as well, which only makes the bound tighter.
    per_file = _VALUES_PER_FILE + (MAX_PATH_COLUMNS if rules.hive_keys else 0)
    values, most = sum(map(data.count, (b",", b"[", b"{"))), max(per_file * rules.max_files, _MIN_VALUES)
    if values > most:
        raise _too_many(f"{uri}: about {values} JSON values, expected at most {most}", rules)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise ManifestError("not_json", f"{uri}: {exc}; expected one JSON object") from exc
    if not isinstance(document, dict):
        kind = "an array" if isinstance(document, list) else _shown(document)
        raise ManifestError("not_an_object", f"{uri}: found {kind}, expected a JSON object")
    return document


def _too_many(found: str, rules: ManifestRules) -> ManifestError:
    return ManifestError("too_many_files", f"{found}, because input.max_manifest_files is {rules.max_files}")


def _versioned(document: dict[str, Any], uri: str, modified_at: datetime, rules: ManifestRules) -> Manifest:
    version = document["version"]
    if version != 1 or isinstance(version, bool):
        raise ManifestError("unknown_version", f"{uri}: version is {_shown(version)}, expected 1")
    manifest_id = document.get("manifest_id")
    if not isinstance(manifest_id, str) or not layout.MANIFEST_ID.fullmatch(manifest_id):
        raise ManifestError(
            "bad_id",
            f"{uri}: manifest_id is {_shown(manifest_id)}, expected 1 to {_ID_MAX_CHARACTERS} letters, digits, '.', "
            f"'_' or '-', the first a letter or digit",
        )
    date = document.get("date")
    if not isinstance(date, str) or not layout.is_date(date):
        raise ManifestError("bad_date", f"{uri}: date is {_shown(date)}, expected a calendar day as yyyy-mm-dd")
    files = document.get("files")
    if not isinstance(files, list) or not files:
        raise ManifestError("no_files", f"{uri}: files is {_shown(files)}, expected a list of at least one file")
    if len(files) > rules.max_files:
        raise _too_many(f"{uri}: names {len(files)} files, expected at most {rules.max_files}", rules)
    found = rules.dates.of_named(NamedDate(date, "name"), modified_at)
    return Manifest(
        manifest_id=manifest_id,
        date=found.date,
        ignored_date=found.ignored,
        created_at=_time(document.get("created_at"), uri, "created_at") or modified_at,
        files=tuple(_file(entry, uri, index) for index, entry in enumerate(files)),
        rejects_of=_id_or_none(document.get("rejects_of")),
        listed_at=_time_or_none(document.get("listed_at")),
    )


def _time_or_none(value: Any) -> datetime | None:
    """The time of a key that other writers may use for something else."""
    try:
        return _time(value, "", "")
    except ManifestError:
        return None


def _id_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and layout.MANIFEST_ID.fullmatch(value) else None


def _file(entry: Any, manifest_uri: str, index: int) -> ManifestFile:
    if not isinstance(entry, dict):
        raise _bad_file(manifest_uri, f"files[{index}]", entry, "an object with a uri")
    uri, size_bytes, etag, event_time = map(entry.get, ("uri", "size_bytes", "etag", "event_time"))
    source_uri, rejected_as, dated_by = map(entry.get, ("source_uri", "rejected_as", "dated_by"))
    if not isinstance(uri, str):
        raise _bad_file(manifest_uri, f"files[{index}].uri", uri, "a string")
    if size_bytes is not None and (not isinstance(size_bytes, int) or isinstance(size_bytes, bool) or size_bytes < 0):
        raise _bad_file(manifest_uri, f"files[{index}].size_bytes", size_bytes, "a whole number from 0")
    if etag is not None and not (isinstance(etag, str) and is_etag(etag)):
        raise _bad_file(manifest_uri, f"files[{index}].etag", etag, ETAG_EXPECTED)
    of_path = entry.get("path_columns")
    if of_path is not None and not are_path_columns(of_path):
        raise _bad_file(manifest_uri, f"files[{index}].path_columns", of_path, "a few short strings by key")
    of_range = entry.get("range")
    if of_range is not None and not (layout.is_local(uri) and etag and (parsed := _range(of_range, size_bytes))):
        what = "the bytes, the lines and the digests of a range of a local file, with its length and version"
        raise _bad_file(manifest_uri, f"files[{index}].range", of_range, what)
    return ManifestFile(
        uri=uri,
        size_bytes=size_bytes,
        etag=(etag or "").strip('"') or None,  # S3 quotes its ETags, and some writers keep the quotes
        event_time=None if event_time is None else _time(event_time, manifest_uri, f"files[{index}].event_time"),
        # Other writers may use these names for something else; see `_check_files`.
        source_uri=source_uri if isinstance(source_uri, str) else None,
        rejected_as=rejected_as if isinstance(rejected_as, str) else None,
        dated_by=dated_by if isinstance(dated_by, str) and dated_by in RULES else None,
        path_columns=of_path,
        range=None if of_range is None else parsed,
    )


def _range(value: Any, size_bytes: int | None) -> FileRange | None:
    """The range of a file; None if it is malformed."""
    try:
        found = FileRange.model_validate(value, strict=True)
    except ValidationError:
        return None
    return found if found.size_bytes == size_bytes and found.from_byte else None


ETAG_EXPECTED = f"a string of at most {_ETAG_MAX_CHARACTERS:,} printable ASCII characters"


def is_etag(text: str) -> bool:
    """Return whether a text may be the version of an object, so that a request can carry it in a header."""
    return _ETAG.fullmatch(text) is not None


def _bad_file(uri: str, where: str, found: Any, expected: str) -> ManifestError:
    return ManifestError("bad_file", f"{uri}: {where} is {_shown(found)}, expected {expected}")


def _time(value: Any, uri: str, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as exc:  # the zone can take a moment beyond year 1 or 9999
        raise _bad_file(uri, where, value, "a time in ISO 8601") from exc


def _file_locations(document: dict[str, Any], uri: str, modified_at: datetime, rules: ManifestRules) -> Manifest:
    entries = document["fileLocations"]
    uris: list[str] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        named = entry.get("URIPrefixes") if isinstance(entry, dict) else None
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise _bad_file(uri, f"fileLocations[{index}]", entry, "an object with URIPrefixes")
        uris += named
        if len(uris) > rules.max_files:
            raise _too_many(f"{uri}: names {len(uris)} files or more, expected at most {rules.max_files}", rules)
    if not uris:
        raise ManifestError("no_files", f"{uri}: fileLocations names no file, expected at least one URI")
    found = rules.dates.of_named(_named_date(uris, uri), modified_at)
    return Manifest(
        manifest_id=layout.id_from_name(uri),
        date=found.date,
        ignored_date=found.ignored,
        created_at=modified_at,
        files=tuple(ManifestFile(uri=name, dated_by=found.rule) for name in uris),
    )


def _named_date(uris: Iterable[str], manifest_uri: str) -> NamedDate | None:
    """The first date in the names of files, else in that of their manifest."""
    named = next(filter(None, map(named_date, uris)), None)
    of_manifest = layout.first_date(layout.base_name(manifest_uri))
    return named or (NamedDate(of_manifest, "name") if of_manifest else None)


def is_allowed(uri: str, manifest_id: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> bool:
    """Return whether a manifest may name a file: an allowed prefix or within one, or redriven lines of its lineage."""
    path = layout.canonical(uri)
    if any(layout.is_within(uri, prefix) or path == layout.canonical(prefix) for prefix in allowed_prefixes):
        return True
    owner = layout.redriven_owner(uri, redriven_folder) if redriven_folder else None
    return owner is not None and layout.root_id(owner) == layout.root_id(manifest_id)


def _check_files(manifest: Manifest, uri: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> None:
    seen: set[str] = set()
    for file in manifest.files:
        path = layout.canonical(file.uri)
        is_gap = is_log(path)  # nothing is read of it, wherever it is
        fault = _gap_fault(file) if is_gap else uri_fault(path)
        if fault:
            raise ManifestError("bad_uri", f"{uri}: {_shown(file.uri)} {fault}")
        # guard: a manifest cannot name files outside the allowed prefixes
        if not is_gap and not is_allowed(path, manifest.manifest_id, allowed_prefixes, redriven_folder):
            raise ManifestError(
                OUTSIDE,
                f"{uri}: {_shown(file.uri)} is not below one of the allowed prefixes: {', '.join(allowed_prefixes)}",
            )
        if path in seen:  # guard: a file that a manifest names twice is not compacted twice
            raise ManifestError("duplicate_uri", f"{uri}: {_shown(file.uri)} is named twice, expected each file once")
        seen.add(path)


def _without_false_origins(manifest: Manifest, redriven_folder: str) -> Manifest:
    """The manifest without origins of files that are no redriven lines: only `redrive` knows where lines are from."""
    if all(file.source_uri is None and file.rejected_as is None for file in manifest.files):
        return manifest.model_copy(update={"rejects_of": None})
    files = tuple(
        file
        if layout.redriven_owner(file.uri, redriven_folder)
        else file.model_copy(update={"source_uri": None, "rejected_as": None})
        for file in manifest.files
    )
    return manifest.model_copy(update={"files": files})


def _is_landed(file: ManifestFile, redriven_folder: str) -> bool:
    """Whether the compactor itself wrote a file of records, below its own folders, which say nothing of these."""
    if file.source_uri is not None or not redriven_folder:
        return False
    return layout.redriven_owner(file.uri, redriven_folder) is not None


def uri_fault(path: str) -> str:
    """Return why no manifest can name a file, with what was expected; empty if one can. `path` is canonical."""
    length = len(path) if path.isascii() else len(path.encode(errors="surrogatepass"))
    if path.startswith("s3://"):
        bucket, _, key = path.removeprefix("s3://").partition("/")
        if bucket and key and len(bucket) > _BUCKET_MAX_CHARACTERS:
            return f"has a bucket of {len(bucket)} characters, expected at most {_BUCKET_MAX_CHARACTERS}"
        key_bytes = length - len(f"s3://{bucket}/".encode(errors="surrogatepass"))
        if key_bytes > _KEY_MAX_BYTES:
            return f"has a key of {key_bytes} bytes, expected at most {_KEY_MAX_BYTES:,}"
        is_file = bool(bucket and key)
    else:
        is_file = path.startswith("/")
        if is_file and length > _PATH_MAX_BYTES:
            return f"is a path of {length} bytes, expected at most {_PATH_MAX_BYTES:,}"
    if not is_file or "\0" in path or path.endswith("/"):
        return "is not a file; expected s3://bucket/key, file:///path or /path"
    return ""


def _gap_fault(file: ManifestFile) -> str:
    """Return why a manifest cannot name a gap, with what was expected; empty if it can."""
    try:
        LogGap.parse(file.uri)
    except ValueError as exc:
        return f"is not a gap; expected {exc}"
    if file.etag is None or file.size_bytes != 0:
        return "has no etag, or no such size_bytes; expected the id of the log, and 0"
    return ""


def _shown(value: Any) -> str:
    """A value for a message: as JSON if possible, and cut to a bound."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        text = f"a {type(value).__name__} nested too deep to show"
    return text if len(text) <= _SHOWN_MAX_CHARACTERS else text[: _SHOWN_MAX_CHARACTERS - 3] + "..."
