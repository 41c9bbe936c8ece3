"""Parses manifests in every accepted form, in bounded time and memory even for hostile bytes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    NonNegativeInt,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from compactor.core import layout
from compactor.core.documents.manifest import OUTSIDE, FileRange, Manifest, ManifestFile
from compactor.core.errors import ManifestError
from compactor.core.inputs.dates import RULES, NamedDate, date_of_name, named_date
from compactor.core.inputs.source_places import MAX_PATH_COLUMNS, are_short, exclusion, path_columns
from compactor.core.logs.names import LogGap, is_log
from compactor.core.text.formatting import shown

MAX_MANIFEST_FILES = 100_000
MAX_MANIFEST_BYTES = 64 * 1024 * 1024

_ID_MAX_CHARACTERS = 200
_VALUES_PER_FILE = 16  # a file has a comma per field, including those of a range, and three brackets
_KEY_MAX_BYTES = 1024  # of a key [S3 user guide]
_BUCKET_MAX_CHARACTERS = 255  # of an old bucket in us-east-1; 63 of any other [S3 user guide]
_PATH_MAX_BYTES = 4096  # Linux, PATH_MAX
_ETAG_MAX_CHARACTERS = 1024
_ETAG = re.compile(rf"[\x20-\x7e]{{0,{_ETAG_MAX_CHARACTERS}}}")  # an ETag is sent in a request header


@dataclass(frozen=True, slots=True)
class ManifestRules:
    """What the settings allow in a manifest.

    Attributes:
        hive_keys: Whether folders such as `country=DE` become columns.
        exclude: Patterns of excluded files; see `exclusion`.
    """

    hive_keys: bool = False
    exclude: tuple[str, ...] = ()

    def excludes(self, uri: str) -> bool:
        return bool(self.exclude) and exclusion(self.exclude).fullmatch(layout.canonical(uri)) is not None

    def with_path_columns(self, file: ManifestFile) -> ManifestFile:
        """The file with the columns of its path, unless it has columns already or `hive_keys` is off."""
        if not self.hive_keys or file.path_columns is not None:
            return file
        return file.model_copy(update={"path_columns": path_columns(file.origin_uri) or None})


DEFAULT_RULES: ManifestRules = ManifestRules()


def check_length(uri: str, length_bytes: int) -> None:
    """Check the length of a manifest before reading it.

    Raises:
        ManifestError: It is longer than `MAX_MANIFEST_BYTES`.
    """
    if length_bytes > MAX_MANIFEST_BYTES:
        raise ManifestError("too_big", f"{uri}: {length_bytes} bytes; expected at most {MAX_MANIFEST_BYTES}")


def is_etag(text: str) -> bool:
    """Whether a request can send this text as an ETag, in a header."""
    return _ETAG.fullmatch(text) is not None


def parse_manifest(
    data: bytes,
    *,
    uri: str,
    modified_at: datetime,
    allowed_prefixes: Sequence[str],
    redriven_folder: str = "",
    rules: ManifestRules = DEFAULT_RULES,
) -> Manifest:
    """Parse a manifest.

    Args:
        data: The object's bytes.
        uri: Where the object is; its name gives the id of the `fileLocations` form.
        modified_at: Time of the object's last write; used for the date if nothing else gives one.
        allowed_prefixes: Folders that input may be in.
        redriven_folder: The folder of redriven lines. A manifest may name those that were written for it.
        rules: Limits from the settings.

    Raises:
        ManifestError: The manifest cannot be accepted; the reason is one of `REASONS`.
    """
    check_length(uri, len(data))
    document = _document(data, uri, rules)
    if "version" in document:
        manifest = _versioned(document, uri, modified_at)
    elif "fileLocations" in document:
        manifest = _file_locations(document, uri, modified_at)
    else:
        raise ManifestError(
            "unknown_form", f'{uri}: neither "version" nor "fileLocations" in it; its keys are {shown(list(document))}'
        )
    _check_files(manifest, uri, allowed_prefixes, redriven_folder)
    files = tuple(_completed(file, redriven_folder, rules) for file in manifest.files)
    has_origins = any(file.source_uri is not None or file.rejected_as is not None for file in files)
    return manifest.model_copy(update={"files": files, "rejects_of": manifest.rejects_of if has_origins else None})


def uris_in(data: bytes, uri: str, allowed_prefixes: Sequence[str], rules: ManifestRules) -> Iterator[str]:
    """Every string in a manifest, even one that cannot be accepted, that is the URI of a file that may be input.

    Raises:
        ManifestError: It is not one JSON object, or has too many values.
    """
    values: list[Any] = [_document(data, uri, rules)]
    while values:
        value = values.pop()
        if isinstance(value, str):
            if not uri_fault(layout.canonical(value)) and is_allowed(value, "", allowed_prefixes, ""):
                yield value
        elif isinstance(value, list | dict):
            values += value.values() if isinstance(value, dict) else value


def _document(data: bytes, uri: str, rules: ManifestRules) -> dict[str, Any]:
    if not data.strip():
        raise ManifestError("empty", f"{uri}: {len(data)} bytes of white space only; expected a JSON object")
    # Each JSON value but the first follows one of these characters or a colon, and each colon follows a key. So their
    # number bounds the parser's allocations. Occurrences within strings only tighten the bound.
    per_file = _VALUES_PER_FILE + (MAX_PATH_COLUMNS if rules.hive_keys else 0)
    values, most = sum(map(data.count, (b",", b"[", b"{"))), per_file * MAX_MANIFEST_FILES
    if values > most:
        raise ManifestError("too_many_files", f"{uri}: about {values} JSON values, expected at most {most}")
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise ManifestError("not_json", f"{uri}: {exc}; expected one JSON object") from exc
    if not isinstance(document, dict):
        kind = "an array" if isinstance(document, list) else shown(document)
        raise ManifestError("not_an_object", f"{uri}: found {kind}, expected a JSON object")
    return document


def _check_number(files: int, uri: str) -> None:
    if files > MAX_MANIFEST_FILES:
        raise ManifestError("too_many_files", f"{uri}: names {files} files, expected at most {MAX_MANIFEST_FILES}")


def _checked(is_valid: Callable[[Any], bool]) -> AfterValidator:
    def checked(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError("not as expected")
        return value

    return AfterValidator(checked)


def moment(value: Any) -> datetime:
    """A time in ISO 8601; ValueError for anything else."""
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (TypeError, OverflowError) as exc:  # the zone can move a time beyond year 1 or 9999
        raise ValueError("not a time") from exc


def _or_none(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Ignore a key that other writers use with a different meaning."""
    try:
        return validate(value)
    except ValidationError:
        return None


_ID = _checked(lambda text: layout.MANIFEST_ID.fullmatch(text) is not None)
_Time = Annotated[datetime, BeforeValidator(moment)]
_OurText = Annotated[str | None, WrapValidator(_or_none)]


class _File(BaseModel):
    uri: str
    size_bytes: NonNegativeInt | None = None
    # S3 quotes its ETags, and some writers keep the quotes.
    etag: Annotated[str, _checked(is_etag), AfterValidator(lambda text: text.strip('"') or None)] | None = None
    other_etags: Annotated[list[Annotated[str, _checked(is_etag)]] | None, WrapValidator(_or_none)] = None
    event_time: _Time | None = None
    source_uri: _OurText = None
    rejected_as: _OurText = None
    dated_by: Annotated[_OurText, AfterValidator(lambda rule: rule if rule in RULES else None)] = None
    path_columns: Annotated[dict[str, str], _checked(are_short)] | None = None
    follows: _OurText = None
    range: FileRange | None = None

    @field_validator("range")
    @classmethod
    def _is_of_local_file(cls, value: FileRange | None, info: ValidationInfo) -> FileRange | None:
        file = info.data
        is_local = layout.is_local(file.get("uri", "")) and bool(file.get("etag"))
        if value is None or (is_local and value.size_bytes == file.get("size_bytes")):
            return value
        raise ValueError("not as expected")


class _Versioned(BaseModel):
    manifest_id: Annotated[str, _ID]
    date: Annotated[str, _checked(layout.is_date)]
    files: list[_File] = Field(min_length=1, fail_fast=True)
    created_at: _Time | None = None
    rejects_of: Annotated[Annotated[str, _ID] | None, WrapValidator(_or_none)] = None
    listed_at: Annotated[_Time | None, WrapValidator(_or_none)] = None


class _Location(BaseModel):
    uris: list[str] = Field(alias="URIPrefixes", fail_fast=True)


class _FileLocations(BaseModel):
    locations: list[_Location] = Field(alias="fileLocations", fail_fast=True)


_Form = TypeVar("_Form", bound=BaseModel)

_REASON_OF = {"manifest_id": "bad_id", "date": "bad_date", "files": "no_files", "fileLocations": "no_files"}
_EXPECTED = {
    "manifest_id": f"1 to {_ID_MAX_CHARACTERS} letters, digits, '.', '_' or '-', the first a letter or digit",
    "date": "a calendar day as yyyy-mm-dd",
    "created_at": "a time in ISO 8601",
    "files": "a list of at least one file",
    "files[]": "an object with a uri",
    "files[].uri": "a string",
    "files[].size_bytes": "a whole number from 0",
    "files[].etag": f"a string of at most {_ETAG_MAX_CHARACTERS:,} printable ASCII characters",
    "files[].event_time": "a time in ISO 8601",
    "files[].path_columns": "a few short strings by key",
    "files[].range": "the bytes, the lines and the digests of a range of a local file, with its length and version",
    "fileLocations": "a list of objects with URIPrefixes",
    "fileLocations[]": "an object with URIPrefixes",
    "fileLocations[].URIPrefixes": "a list of URIs",
}


def _read(form: type[_Form], document: dict[str, Any], uri: str) -> _Form:
    try:
        return form.model_validate(document, strict=True)
    except ValidationError as exc:
        found: Any = document
        where = ""
        for step in exc.errors(include_url=False, include_context=False, include_input=False)[0]["loc"][:3]:
            found = found[step] if isinstance(step, int) else found.get(step)
            where += f"[{step}]" if isinstance(step, int) else f".{step}"
        where = where.removeprefix(".")
        expected = _EXPECTED[re.sub("[0-9]+", "", where)]
        raise ManifestError(
            _REASON_OF.get(where, "bad_file"), f"{uri}: {where} is {shown(found)}, expected {expected}"
        ) from exc


def _versioned(document: dict[str, Any], uri: str, modified_at: datetime) -> Manifest:
    version, named = document["version"], document.get("files")
    if version != 1 or isinstance(version, bool):
        raise ManifestError("unknown_version", f"{uri}: version is {shown(version)}, expected 1")
    if isinstance(named, list):
        _check_number(len(named), uri)
    form = _read(_Versioned, document, uri)
    found = date_of_name(NamedDate(form.date, "name"), modified_at)
    return Manifest(
        manifest_id=form.manifest_id,
        date=found.date,
        ignored_date=found.ignored,
        created_at=form.created_at or modified_at,
        files=tuple(ManifestFile(**vars(file)) for file in form.files),
        rejects_of=form.rejects_of,
        listed_at=form.listed_at,
    )


def _file_locations(document: dict[str, Any], uri: str, modified_at: datetime) -> Manifest:
    uris = [each for location in _read(_FileLocations, document, uri).locations for each in location.uris]
    _check_number(len(uris), uri)
    if not uris:
        raise ManifestError("no_files", f"{uri}: fileLocations names no file, expected at least one URI")
    found = date_of_name(_named_date(uris, uri), modified_at)
    return Manifest(
        manifest_id=layout.id_from_name(uri),
        date=found.date,
        ignored_date=found.ignored,
        created_at=modified_at,
        files=tuple(ManifestFile(uri=name, dated_by=found.rule) for name in uris),
    )


def _named_date(uris: Iterable[str], manifest_uri: str) -> NamedDate | None:
    """The first date in the names of files, else the one in the manifest's name."""
    named = next(filter(None, map(named_date, uris)), None)
    of_manifest = layout.first_date(layout.base_name(manifest_uri))
    return named or (NamedDate(of_manifest, "name") if of_manifest else None)


def is_allowed(uri: str, manifest_id: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> bool:
    """Whether a manifest may name a file: an allowed prefix or a file below it, or redriven lines of its lineage."""
    path = layout.canonical(uri)
    if any(layout.is_within(uri, prefix) or path == layout.canonical(prefix) for prefix in allowed_prefixes):
        return True
    owner = layout.redriven_owner(uri, redriven_folder) if redriven_folder else None
    return owner is not None and layout.root_id(owner) == layout.root_id(manifest_id)


def _check_files(manifest: Manifest, uri: str, allowed_prefixes: Sequence[str], redriven_folder: str) -> None:
    seen: set[str] = set()
    for file in manifest.files:
        path = layout.canonical(file.uri)
        is_gap = is_log(path)  # nothing is read from it, wherever it is
        fault = _gap_fault(file) if is_gap else uri_fault(path)
        if fault:
            raise ManifestError("bad_uri", f"{uri}: {shown(file.uri)} {fault}")
        # guard: a manifest cannot name files outside the allowed prefixes
        if not is_gap and not is_allowed(path, manifest.manifest_id, allowed_prefixes, redriven_folder):
            raise ManifestError(
                OUTSIDE,
                f"{uri}: {shown(file.uri)} is not below one of the allowed prefixes: {', '.join(allowed_prefixes)}",
            )
        if path in seen:  # guard: a file that a manifest names twice is not compacted twice
            raise ManifestError("duplicate_uri", f"{uri}: {shown(file.uri)} is named twice, expected each file once")
        seen.add(path)


def _completed(file: ManifestFile, redriven_folder: str, rules: ManifestRules) -> ManifestFile:
    """Add the columns from the file's path; drop an origin that only a redrive can give."""
    is_own = bool(redriven_folder and layout.redriven_owner(file.uri, redriven_folder))
    if not is_own and (file.source_uri is not None or file.rejected_as is not None):
        file = file.model_copy(update={"source_uri": None, "rejected_as": None})
    is_landed = is_own and file.source_uri is None  # the compactor chose its path, which carries no information
    return file if is_landed else rules.with_path_columns(file)


def uri_fault(path: str) -> str:
    """Why a manifest cannot name a file, with what was expected; empty if it can. `path` is canonical."""
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
    try:
        LogGap.parse(file.uri)
    except ValueError as exc:
        return f"is not a gap; expected {exc}"
    if file.etag is None or file.size_bytes != 0:
        return "has no etag, or no such size_bytes; expected the id of the log, and 0"
    return ""
