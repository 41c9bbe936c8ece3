"""Profiles files to suggest a schema file, for `compactor schema suggest` and `compact --types infer`."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound, SettingsError
from compactor.core.inputs.source_places import path_columns
from compactor.core.layout import folder
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.text.formatting import count
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.files.object_reading import open_file, reading
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from compactor.ndjson.profiling import profile_file
from compactor.schema.column_profile import TableProfile
from compactor.schema.suggestion import SuggestionRules, suggestion
from compactor.telemetry.meter import Meter

T = TypeVar("T")

SAMPLE_FILES = 100  # at most
SAMPLE_FILE_BYTES = 256 * 1024 * 1024  # decoded per file, so that one without records cannot take long
SAMPLE_BYTES = 32 * 1024 * 1024  # of lines, which take some seconds however long they are


@dataclass(slots=True)
class Survey:
    """The content of a folder's files.

    Attributes:
        source: The places, in words.
        read: The URIs of the files read, by their number in the profile.
        files: The total number of files.
        unreadable: Files that could not be read as far as wanted, with the reason.
    """

    source: str
    profile: TableProfile
    read: list[str] = field(default_factory=list)
    files: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    def schema_file(self, rules: SuggestionRules) -> str:
        """The suggested schema file.

        Raises:
            SettingsError: No record has a key.
        """
        self._check()
        base = folder(self.source)
        of = f"{len(self.read):,} of {count(self.files, 'file')}" if len(self.read) < self.files else "all files"
        header = [
            f"Types of {count(self.profile.records, 'record')}, from {of} of {self.source}.",
            "A column never changes its type once there are rows, so check them first. A later value that does not fit",
            "is null in its column and kept as text in _rescued_data.",
        ]
        if self.profile.other_lines:
            header.append(f"{count(self.profile.other_lines, 'line')} left out: not one JSON object each.")
        header += [f"Not read to the end: {uri}: {why}" for uri, why in self.unreadable[:_SHOWN_FILES]]
        if len(self.unreadable) > _SHOWN_FILES:
            header.append(f"and {len(self.unreadable) - _SHOWN_FILES:,} more such files")
        names = [uri.removeprefix(base) for uri in self.read]
        return suggestion(self.profile, rules, header=header, file_name=names.__getitem__)

    def _check(self) -> None:
        if self.profile.columns:
            return
        if not self.files:
            raise SettingsError([f"SRC: {self.source} holds no files with data -> expected NDJSON files"])
        found = f"SRC: {self.source}: no record with a key in {len(self.read):,} of {self.files:,} files"
        why = f"; {self.unreadable[0][0]}: {self.unreadable[0][1]}" if self.unreadable else ""
        raise SettingsError([f"{found}{why} -> expected lines that are one JSON object each"])


_SHOWN_FILES = 5


def spread(items: Iterable[T], most: int) -> tuple[list[T], int]:
    """At most `most` items, spread evenly over all: the first one, the last or one near it; and the total number."""
    kept, step, offered = list[T](), 1, 0
    for item in items:
        if offered % step == 0:
            kept.append(item)
            if len(kept) > 2 * most:
                kept, step = kept[::2], 2 * step
        offered += 1
    chosen, last = min(most, len(kept)), len(kept) - 1
    if chosen <= 1:
        return kept[:chosen], offered
    return [kept[round(at * last / (chosen - 1))] for at in range(chosen)], offered


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSuggester:
    """Profiles files.

    Attributes:
        max_keys: The most keys to count.
        formats: Which kinds of files are read.
        hive_keys: Whether folders such as `country=DE` add columns.
        meter: Counts the files that were read.
        levels: How deep to profile the parts of arrays and objects, too.
    """

    store: ObjectStore
    limits: Limits
    max_keys: int
    formats: Formats = Formats()  # noqa: RUF009 - it is frozen
    hive_keys: bool = False
    meter: Meter = field(default_factory=Meter)
    levels: int = 0

    def survey(self, source: str, files: Iterable[ObjectInfo], *, max_records: int | None) -> Survey:
        """Read the first records of evenly spread files, `max_records` in total, or with None all records.

        Raises:
            StoreUnavailable: The store does not answer now.
        """
        found = Survey(source, TableProfile(self.max_keys))
        if max_records is None:
            for info in self.meter.each("file", files):
                found.files += 1
                self._read(info, found, None, None)
            return found
        chosen, found.files = spread(files, min(SAMPLE_FILES, max_records))
        left_bytes = SAMPLE_BYTES
        for number, info in enumerate(self.meter.each("file", chosen, len(chosen))):
            # Later files get the share that short files did not use.
            share = -(-(max_records - found.profile.records) // (len(chosen) - number))
            if share > 0:
                left_bytes -= self._read(info, found, share, max(1, left_bytes // (len(chosen) - number)))
        return found

    def _read(self, info: ObjectInfo, found: Survey, max_records: int | None, max_bytes: int | None) -> int:
        """Add a file to the survey; return how many bytes of its lines were read."""
        number, limits = len(found.read), self.limits
        if max_records is not None:
            most = min(SAMPLE_FILE_BYTES, limits.max_decompressed_bytes)
            limits = replace(limits, max_decompressed_bytes=most)
        found.read.append(info.uri)
        read_bytes = 0
        try:
            opened = open_file(self.store, ManifestFile(uri=info.uri, etag=info.etag), any_version=True)
            codec = sniff(opened.first[:SNIFF_BYTES])
            with reading(self.store, opened) as stored:
                read_bytes = profile_file(
                    decode(codec, stored),
                    limits,
                    found.profile,
                    split=self.formats.splitter(info.uri),
                    file=number,
                    max_records=max_records,
                    max_bytes=max_bytes,
                    path_values=path_columns(info.uri) if self.hive_keys else None,
                    levels=self.levels,
                )
        except FileError as exc:
            found.unreadable.append((info.uri, exc.message))
        except (AccessError, LinkRefused, ObjectChanged, ObjectNotFound) as exc:
            found.unreadable.append((info.uri, str(exc)))
        return read_bytes
