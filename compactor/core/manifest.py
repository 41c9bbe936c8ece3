"""Manifests: every accepted form is parsed into one frozen `Manifest`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, field_serializer

from compactor.core import layout
from compactor.core.errors import ManifestError
from compactor.core.manifest_key import ManifestKey

MAX_MANIFEST_BYTES = 64 * 1024 * 1024  # about 300,000 files; a manifest names a few hundred
_ID_MAX_CHARACTERS = 200
_SHOWN_MAX_CHARACTERS = 120

OUTSIDE = "outside_allowed_prefixes"

REASONS = {
    "empty": "the object holds no bytes",
    "too_big": "the object is larger than any manifest can be",
    "not_json": "the object is not one JSON document",
    "not_an_object": "the document is not a JSON object",
    "unknown_version": "a version that this release does not read",
    "unknown_form": "neither version 1 nor fileLocations",
    "bad_id": "the manifest_id cannot be part of a file name",
    "bad_date": "the date is no calendar day",
    "no_files": "no files are named",
    "bad_file": "an entry of files that is not as it should be",
    "bad_uri": "a URI that is not s3://bucket/key, file:///path or an absolute path",
    OUTSIDE: "a URI that is not below an allowed prefix",
    "duplicate_uri": "a file is named twice",
    "id_already_used": "another manifest was accepted under this id",
    "hidden_name": "the file source does not see names that begin with _ or .",
    "nested": "the object is in a folder below the watched prefix",
    "retries_exhausted": "every attempt failed",
}
"""Why a manifest can become a dead letter: each reason with its meaning."""


UNKNOWN_SIZE_BYTES = 4 * 1024 * 1024
"""The assumed length of a file whose manifest gives none; about what producers write."""


class ManifestFile(BaseModel):
    """One input file, at the version that was listed or announced.

    Attributes:
        uri: Taken literally.
        size_bytes: Its length, where the writer of the manifest knew it.
        etag: Its version, where the writer of the manifest knew it.
        event_time: When it was created.
    """

    model_config = ConfigDict(frozen=True)

    uri: str
    size_bytes: int | None = None
    etag: str | None = None
    event_time: datetime | None = None

    @property
    def weight_bytes(self) -> int:
        """Its length, or an assumed one, for dividing work."""
        return UNKNOWN_SIZE_BYTES if self.size_bytes is None else self.size_bytes


class Manifest(BaseModel):
    """Files that are compacted together into the Parquet of one date. Immutable once written."""

    model_config = ConfigDict(frozen=True)

    version: int = 1
    manifest_id: str
    date: str
    created_at: datetime
    files: tuple[ManifestFile, ...]

    @property
    def key(self) -> ManifestKey:
        return ManifestKey(self.date, self.manifest_id)

    @field_serializer("created_at")
    def _second_precision(self, value: datetime) -> str:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"

    def to_json(self) -> bytes:
        """The bytes of this manifest as version 1."""
        return self.model_dump_json(exclude_none=True).encode()


def parse_manifest(
    data: bytes, *, uri: str, modified_at: datetime, allowed_prefixes: Sequence[str], redriven_folder: str = ""
) -> Manifest:
    """Read the bytes of a manifest, in any of the accepted forms.

    Args:
        data: The object's bytes.
        uri: Where the object is; its name gives the id of the `fileLocations` form.
        modified_at: Time of the object's last write; the last resort for a date.
        allowed_prefixes: Folders that input may be in.
        redriven_folder: Where the files of redriven lines are; a manifest may name those that were written for it.

    Raises:
        ManifestError: It cannot be accepted; the reason is one of `REASONS`.
    """
    document = _document(data, uri)
    if "version" in document:
        manifest = _version_1(document, uri, modified_at)
    elif "fileLocations" in document:
        manifest = _file_locations(document, uri, modified_at)
    else:
        raise ManifestError(
            "unknown_form", f'{uri}: neither "version" nor "fileLocations" in it; its keys are {_shown(list(document))}'
        )
    _check_files(manifest, uri, allowed_prefixes, redriven_folder)
    return manifest


def _document(data: bytes, uri: str) -> dict[str, Any]:
    if not data.strip():
        raise ManifestError("empty", f"{uri}: {len(data)} bytes, none of them content; expected a JSON object")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise ManifestError("not_json", f"{uri}: {exc}; expected one JSON object") from exc
    if not isinstance(document, dict):
        kind = "an array" if isinstance(document, list) else _shown(document)
        raise ManifestError("not_an_object", f"{uri}: found {kind}, expected a JSON object")
    return document


def _version_1(document: dict[str, Any], uri: str, modified_at: datetime) -> Manifest:
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
    return Manifest(
        manifest_id=manifest_id,
        date=date,
        created_at=_time(document.get("created_at"), f"{uri}: created_at") or modified_at,
        files=tuple(_file(entry, f"{uri}: files[{index}]") for index, entry in enumerate(files)),
    )


def _file(entry: Any, where: str) -> ManifestFile:
    if not isinstance(entry, dict):
        raise ManifestError("bad_file", f"{where} is {_shown(entry)}, expected an object with a uri")
    uri, size_bytes, etag = entry.get("uri"), entry.get("size_bytes"), entry.get("etag")
    if not isinstance(uri, str):
        raise ManifestError("bad_file", f"{where}.uri is {_shown(uri)}, expected a string")
    if size_bytes is not None and (not isinstance(size_bytes, int) or isinstance(size_bytes, bool) or size_bytes < 0):
        raise ManifestError("bad_file", f"{where}.size_bytes is {_shown(size_bytes)}, expected a whole number from 0")
    if etag is not None and not isinstance(etag, str):
        raise ManifestError("bad_file", f"{where}.etag is {_shown(etag)}, expected a string")
    return ManifestFile(
        uri=uri,
        size_bytes=size_bytes,
        etag=(etag or "").strip('"') or None,  # S3 quotes its ETags, and some writers keep the quotes
        event_time=_time(entry.get("event_time"), f"{where}.event_time"),
    )


def _time(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (TypeError, ValueError, OverflowError) as exc:  # the zone can take a moment beyond year 1 or 9999
        raise ManifestError("bad_file", f"{where} is {_shown(value)}, expected a time in ISO 8601") from exc


def _file_locations(document: dict[str, Any], uri: str, modified_at: datetime) -> Manifest:
    entries = document["fileLocations"]
    uris: list[str] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        named = entry.get("URIPrefixes") if isinstance(entry, dict) else None
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise ManifestError(
                "bad_file", f"{uri}: fileLocations[{index}] is {_shown(entry)}, expected an object with URIPrefixes"
            )
        uris += named
    if not uris:
        raise ManifestError("no_files", f"{uri}: fileLocations names no file, expected at least one URI")
    dates = [date for name in uris if (date := layout.first_date(layout.base_name(name)) or layout.first_date(name))]
    return Manifest(
        manifest_id=layout.id_from_name(uri),
        date=(dates and dates[0]) or layout.date_of_file(layout.base_name(uri), modified_at),
        created_at=modified_at,
        files=tuple(ManifestFile(uri=name) for name in uris),
    )


def is_allowed(uri: str, manifest_id: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> bool:
    """Return whether a manifest may name a file: in an allowed prefix, or its own or predecessors' redriven lines."""
    if any(layout.is_within(uri, prefix) for prefix in allowed_prefixes):
        return True
    owner = layout.redriven_owner(uri, redriven_folder) if redriven_folder else None
    return owner is not None and layout.root_id(owner) == layout.root_id(manifest_id)


def _check_files(manifest: Manifest, uri: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> None:
    seen: set[str] = set()
    for file in manifest.files:
        path = layout.canonical(file.uri)
        if not _is_file_uri(path):
            raise ManifestError(
                "bad_uri", f"{uri}: {_shown(file.uri)} is not a file; expected s3://bucket/key, file:///path or /path"
            )
        if not is_allowed(file.uri, manifest.manifest_id, allowed_prefixes, redriven_folder):
            raise ManifestError(
                OUTSIDE,
                f"{uri}: {_shown(file.uri)} is not below one of the allowed prefixes: {', '.join(allowed_prefixes)}",
            )
        if path in seen:
            raise ManifestError("duplicate_uri", f"{uri}: {_shown(file.uri)} is named twice, expected each file once")
        seen.add(path)


def _is_file_uri(path: str) -> bool:
    if "\0" in path or path.endswith("/"):
        return False
    if path.startswith("s3://"):
        bucket, _, key = path.removeprefix("s3://").partition("/")
        return bool(bucket and key)
    return path.startswith("/")


def _shown(value: Any) -> str:
    """A value for a message: as JSON if possible, and cut to a bound."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        text = f"a {type(value).__name__} nested too deep to show"
    return text if len(text) <= _SHOWN_MAX_CHARACTERS else text[: _SHOWN_MAX_CHARACTERS - 3] + "..."
