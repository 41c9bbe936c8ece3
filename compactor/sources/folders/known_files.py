"""Reads what manifests contain about the files in sources, present or deleted, and classifies each file."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.documents.records import FileReport
from compactor.core.errors import AccessError, FileError, TryAgainError
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import canonical, is_s3
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.core.versions import AskedBeginnings, Beginning
from compactor.ledger.state import State
from compactor.sources.candidates import is_settled
from compactor.sources.file_search import FileSearch, Naming
from compactor.sources.folders.history import HistorySearch, Shorter, SummarisedFiles
from compactor.sources.folders.matching import Matches, Matching, is_of, uncompressed_name
from compactor.sources.spill import FileSpill, SpilledFile

Version = tuple[str, str]
"""A file's canonical URI and etag."""


class WholeLines(NamedTuple):
    """The beginning of a file up to the end of its last complete line, or its part from some byte on.

    Attributes:
        end: Where that line ends.
        digest: Digest of all bytes before it.
        digest_within: Digest of those of the part.
        ends_line: Whether the part begins with the line feed of a line before it.
    """

    end: int
    digest: str
    digest_within: str
    ends_line: bool = False


class SeenFiles(Protocol):
    """Remembers local files: their bytes, and whether they were rewritten without a change of time.

    A file without an ETag is being written, and only what it had up to its given length is read.
    """

    def rewritten(self, files: Sequence[ObjectInfo]) -> set[str]:
        """The URIs of files rewritten since they were remembered, with the same length and time."""

    def remembered(self, uris: Iterable[str]) -> dict[str, str]:
        """The remembered versions of files, by canonical URI."""

    def names(self, etag: str, digest: str) -> dict[str, str]:
        """The etags of the files remembered with this version, or with its bytes after a touch, by canonical URI."""

    def digest(self, file: ObjectInfo) -> str:
        """The digest of a file's bytes, as in `FileReport.digest`; empty where the store has other means.

        Raises:
            TryAgainError: The file changed since it was listed, or the store failed.
            AccessError: Access to the file is denied.
        """

    def content(self, file: ObjectInfo, most_bytes: int) -> Beginning | None:
        """The length and digest of a compressed file's content; None if it is not compressed.

        The digest of a content longer than this is empty. Raises as `digest`.
        """

    def beginnings(self, file: ObjectInfo, asked: AskedBeginnings) -> set[Beginning]:
        """The given beginnings that a file's content has; none where the store has other means. Raises as `digest`."""

    def alone(self) -> AbstractContextManager[bool]:
        """Whether no other planner of these local files is at work, until the end of the context or of the process."""

    def whole_lines(self, file: ObjectInfo, start: int, *, with_rest: bool = False) -> WholeLines | None:
        """A file's complete lines from a byte on; None if no line starts or ends there.

        They end at `start` if no complete line follows. Raises as `digest`, also for a hole in a file that is being
        written.

        Args:
            file: The file.
            start: Where a line starts.
            with_rest: Whether a record behind the last line feed is a line, too.
        """

    def last_line_end(self, file: ObjectInfo, upto: int | None = None) -> Beginning | None:
        """The end of the last complete line of a file that is being written, and a digest of some bytes before it.

        Args:
            file: A local file.
            upto: Search before this byte; None for the whole file.

        Returns:
            None if the file does not hold lines, if there is no complete one, or if it cannot be read.
        """

    def torn_line(self, file: ObjectInfo) -> Beginning | None:
        """The end of the last complete line, as from `last_line_end`, if what follows is no record; else None.

        The end is 0 if the file is the beginning of a JSON line.
        """

    def passed(self, versions: Iterable[Version]) -> set[Version]:
        """The versions that were given to `pass_over` since they last existed."""

    def pass_over(self, versions: Iterable[Version]) -> None:
        """Remember versions that no longer exist, and with which no current file begins."""

    def remember(self, files: Sequence[ObjectInfo], versions: Sequence[Version] = ()) -> None:
        """Remember the files as they are now, and that these versions exist, perhaps under other names."""


UNFINISHED_SECONDS = 60.0
"""How long a last line may wait for its line feed before it is taken, or reported if it is no record."""

_NAMINGS_AT_ONCE = 10_000
_ANY_BYTES = 1 << 62


def _most_bytes(file: ManifestFile | ObjectInfo) -> int:
    """The most bytes that a file's content may have."""
    is_plain = uncompressed_name(file.uri) == file.uri
    return file.size_bytes or 0 if is_plain else _ANY_BYTES


class Listed(NamedTuple):
    """A listed file, with its name in manifests."""

    listed: SpilledFile
    file: ManifestFile


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFiles:
    """Classifies the files of one listing.

    Attributes:
        seen: Remembers local files.
        listed: All files that may be planned.
        summarised: Remembers the files of closed dates.
        may_learn: Whether to add to `summarised`.
        takes_grown: Whether new lines of known files are taken.
        growing: Files that are being written. Only their listed bytes count, which the digest of a range identifies.
        unread: Files whose beginnings were needed but unreadable.
    """

    state: State
    allowed_prefixes: Sequence[str]
    sources: Sequence[SourcePlace]
    seen: SeenFiles
    listed: FileSpill
    summarised: SummarisedFiles | None = None
    may_learn: bool = True
    takes_grown: bool = True
    growing: Container[str] = ()
    unread: list[str] = field(default_factory=list, init=False)

    def of(self, files: Mapping[str, Listed], suspects: frozenset[str], released: frozenset[str]) -> Matches:
        """Classify files, by canonical URI, that are in no manifest; see `Matching` for `suspects` and `released`."""
        if not files:
            return Matches()
        remembered = self.seen.remembered(files)
        earlier = (etag for uri, etag in remembered.items() if etag != files[uri].listed.etag)
        versions = {each.listed.etag for each in files.values() if each.listed.stamp}
        versions |= set(earlier)
        by_uri = {uri: each.file for uri, each in files.items()}
        # Beginnings of files on S3 are not read. A compressed one may contain any of the versions.
        longest = max((_most_bytes(file) for uri, file in by_uri.items() if not is_s3(uri)), default=0)
        may_be_gone = partial(self._may_be_gone, longest)
        search = FileSearch(
            state=self.state,
            allowed_prefixes=self.allowed_prefixes,
            versions=versions,
            continued=files,
            also=may_be_gone,
        )
        history = HistorySearch(search=search, files=self.summarised, may_learn=self.may_learn)
        found = history.everywhere(files, size_bytes=longest, is_wanted=self._may_have_left)
        namings = [
            each
            for each, is_passed in self._with_passed(found)
            if not is_passed or each.range or each.uri in files or (each.etag or "") in versions
        ]
        compacted = (each for each in namings if each.state == "compacted" and is_of(self.sources, each.uri))
        left = filter(may_be_gone, compacted)
        gone = [each for each, is_passed in self._with_passed(left) if not is_passed]
        matching = Matching(
            by_uri, namings, self, suspects=suspects, released=released, remembered=remembered, gone=gone
        )
        return matching.matches()

    def _may_be_gone(self, longest: int, version: FileReport | Naming) -> bool:
        """Whether a file may begin with a version that is missing from the listing."""
        length = version.size_bytes if isinstance(version, Naming) else version.end_byte
        if not version.digest or not 0 < length <= longest:
            return False
        return self._is_not_there(canonical(version.uri), version.etag or "")

    def _is_not_there(self, uri: str, etag: str) -> bool:
        there = self.listed.get(uri)
        return there is None or there.etag != etag

    def _may_have_left(self, version: Shorter) -> bool:
        """Whether a version was in one of the sources and is missing from the listing."""
        return self._is_not_there(version.uri, version.etag) and is_of(self.sources, version.uri)

    def _with_passed(self, namings: Iterable[Naming]) -> Iterator[tuple[Naming, bool]]:
        left = iter(namings)
        while some := list(islice(left, _NAMINGS_AT_ONCE)):
            passed = self.seen.passed((each.uri, each.etag or "") for each in some)
            yield from ((each, (each.uri, each.etag or "") in passed) for each in some)

    def digest_of(self, file: ManifestFile) -> str:
        try:
            return self.seen.digest(self._info(file))
        except (TryAgainError, AccessError):
            return ""

    def content_of(self, file: ManifestFile, most_bytes: int) -> Beginning | None:
        try:
            return self.seen.content(self._info(file), most_bytes)
        except (TryAgainError, AccessError, FileError):
            return None

    def _info(self, file: ManifestFile) -> ObjectInfo:
        listed = self.listed.get(canonical(file.uri))
        if listed is None:
            raise LookupError(file.uri)
        return self._of_now(listed.info)

    def _of_now(self, info: ObjectInfo) -> ObjectInfo:
        """A file, to read its bytes: of any version, while it is being written."""
        return replace(info, etag="") if canonical(info.uri) in self.growing else info

    def beginnings_of(self, uris: Sequence[str], asked: AskedBeginnings) -> Iterator[set[Beginning]]:
        def of(uri: str) -> set[Beginning]:
            try:
                info = self._info_at(uri)
                size_bytes = _most_bytes(info) if info else 0
                shorter = {length: digests for length, digests in asked.items() if length < size_bytes}
                return self.seen.beginnings(self._of_now(info), shorter) if info and shorter else set()
            except (TryAgainError, AccessError, FileError):
                self.unread.append(uri)
                return set()

        return map_ordered(of, uris)

    def ranges_after(self, uris: Collection[str]) -> Iterable[Naming]:
        if not uris:
            return ()
        search = FileSearch(state=self.state, allowed_prefixes=self.allowed_prefixes, continued=uris)
        history = HistorySearch(search=search, files=self.summarised, may_learn=False)
        return history.everywhere(uris, size_bytes=0, is_wanted=lambda _: False)

    def range_behind(self, file: ManifestFile, version: Naming) -> FileRange | str:
        if not self.takes_grown:
            return 'input.on_grown is "quarantine"'
        if not version.is_text:
            return "it is compressed, or read as JSON documents"
        return self._lines_behind(file, version.uri, version.size_bytes, version.lines, version.digest)

    def first_lines(self, file: ManifestFile) -> FileRange | None:
        """The complete lines of a file that is being written and has no rows yet; None if they cannot be read."""
        lines = self._lines_behind(file, file.uri, 0, 0, "")
        return None if isinstance(lines, str) else lines

    def _lines_behind(self, file: ManifestFile, continues: str, start: int, lines: int, digest: str) -> FileRange | str:
        try:
            info = self._info(file)
            is_quiet = is_settled(info, self.state.clock.now(), UNFINISHED_SECONDS)
            found = self.seen.whole_lines(info, start, with_rest=is_quiet)
        except (TryAgainError, AccessError) as exc:
            self.unread.append(file.uri)
            return str(exc)
        if found is None:
            return "the earlier lines did not end with a line feed"
        return FileRange(
            continues=continues,
            from_byte=start,
            to_byte=found.end,
            lines_before=lines - found.ends_line,
            digest_before=digest,
            digest=found.digest,
            digest_within=found.digest_within,
        )

    def version_at(self, uri: str) -> str | None:
        try:
            info = self._info_at(uri)
        except AccessError:
            return None
        return info.etag if info else None

    def names_of(self, version: Naming) -> Mapping[str, str]:
        return self.seen.names(version.etag or "", version.digest)

    def _info_at(self, uri: str) -> ObjectInfo | None:
        """The object at a place: as listed, or as it is now if it is in no source."""
        listed = self.listed.get(uri)
        return listed.info if listed is not None else self.state.store.stat(uri)
