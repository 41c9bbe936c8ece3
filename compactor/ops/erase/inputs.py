"""Finds input files that contain a value, and deletes or only lists them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compactor.core.documents.changes import Commit, DeadLetter, GrokRules, Inputs
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import NEEDS_OPERATOR, Accepted, FileReport, FileStatus
from compactor.core.errors import AccessError, FileError, LinkRefused, ObjectChanged, ObjectNotFound
from compactor.core.inputs.record_place import RecordPlace
from compactor.core.layout import Layout, redriven_owner
from compactor.core.map_ordered import map_ordered
from compactor.core.partitions import parse_fields
from compactor.ledger.state import State
from compactor.ndjson.codecs import SNIFF_BYTES, decode, sniff
from compactor.ndjson.files.object_reading import open_file, reading
from compactor.ndjson.grok import DecoderOf, no_decoder
from compactor.ndjson.inspection import inspect_lines
from compactor.ndjson.kinds.formats import recorded_splitter
from compactor.ndjson.lines import Limits, Reject, rejected_record
from compactor.ops.erase.wanted import Pieces, Wanted
from compactor.schema.schema import NO_NEW_KEYS

NOT_COMPACTED = "its other lines are not in any output: redrive it, or delete it yourself"
_NOT_REDRIVEN = "no finished manifest has it: if no redrive is active, delete it yourself"
NEEDED = "its manifest could not be erased, and may have to be rebuilt from it"
ONLY_THERE = "the only copy of rejected lines that were too many to keep: delete it yourself"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input file that may contain a value.

    Attributes:
        etag: The compacted version; empty if unknown.
        max_line_bytes: The longest accepted line; 0 if unknown.
        place: Where its records are in its JSON; None for lines.
        grok: The rules that parse its lines; None for JSON, or if unknown.
        is_own: Whether it is the compactor's own copy of redriven lines.
        is_named: Whether the folders in its path contain a value.
        kept_because: Why it must not be deleted, even on request; empty if it may be.
    """

    uri: str
    manifest_id: str
    etag: str = ""
    place: RecordPlace | None = None
    max_line_bytes: int = 0
    grok: GrokRules | None = None
    is_own: bool = False
    is_named: bool = False
    kept_because: str = ""


def candidates_of(
    commit: Commit, wanted: Wanted, layout: Layout, *, may_be_any: bool, may_be_rejected: bool
) -> Iterator[Candidate]:
    """The input files of a commit to search.

    Every file may contain a value (`may_be_any`) if the rows or rejects do or did, or the rows expired. Rejected lines
    may (`may_be_rejected`) if the rejects expired.
    """
    for file in commit.files:
        is_named, is_compacted = names_value(file, wanted), file.status is FileStatus.COMPACTED
        is_alone = file.status in NEEDS_OPERATOR or bool(file.unkept_rejects)
        is_rejecting = may_be_rejected and bool(file.rejected_lines)
        if may_be_any or is_named or is_alone or is_rejecting:
            yield Candidate(
                uri=file.uri,
                manifest_id=commit.manifest_id,
                etag=file.etag,
                place=file.place,
                max_line_bytes=commit.max_line_bytes,
                grok=commit.grok,
                is_own=redriven_owner(file.uri, layout.redriven_folder) is not None,
                is_named=is_named,
                kept_because=NOT_COMPACTED if not is_compacted else ONLY_THERE if file.unkept_rejects else "",
            )


def copy_candidates(
    uris: Iterable[str], manifest_id: str, accepted: Accepted | None, outcome: Commit | DeadLetter | None
) -> Iterator[Candidate]:
    """The copies (`uris`) of lines that were redriven as one manifest, even those that it does not list.

    The acceptance is None if the manifest was never accepted, and the outcome while it is not done.
    """
    needed, alone = set[str](), set[str]()
    if isinstance(outcome, Commit):
        needed = {file.uri for file in outcome.files if file.status is not FileStatus.COMPACTED}
        alone = {file.uri for file in outcome.files if file.unkept_rejects}
    elif accepted is not None and accepted.manifest is not None:
        needed = {file.uri for file in accepted.manifest.files}
    for uri in uris:
        kept = NOT_COMPACTED if uri in needed else ONLY_THERE if uri in alone else ""
        kept = kept if outcome is not None else _NOT_REDRIVEN
        yield Candidate(uri, manifest_id, is_own=True, kept_because=kept)


def names_value(file: FileReport, wanted: Wanted) -> bool:
    """Whether the folders in a file's path contain a value."""
    return len(wanted.path) == 1 and file.path_columns.get(wanted.key) in wanted.values


def named_partitions(commit: Commit, wanted: Wanted) -> set[str]:
    """The output files whose partition is that of a value."""
    fields = [(field.transform, field.key) for field in parse_fields(commit.partition_by)]
    if len(wanted.path) > 1 or ("identity", wanted.key) not in fields:
        return set()
    at = fields.index(("identity", wanted.key))
    return {file.final for file in commit.outputs if wanted.values.intersection(file.partition[at : at + 1])}


@dataclass(frozen=True, slots=True)
class HeldInput:
    """An input file that contains a value, or may contain one."""

    uri: str
    manifest_id: str  # the manifest that has it
    deleted: bool  # whether it was deleted, or would be
    why: str  # why it was not deleted; empty if it was


_ASKED = "only listed: `--inputs delete` deletes it"
_REPLACED = "it was replaced after it was read: search it again once its new version is compacted"


@dataclass(frozen=True, kw_only=True)
class InputEraser:
    """Searches input files, and deletes those that contain a value on request.

    Attributes:
        limits: The longest line, if no commit has it.
        inputs: What to do with input files. The compactor's own copies of redriven lines are always deleted.
        decoder_of: Makes the decoder of text lines from recorded rules.
    """

    state: State
    wanted: Wanted
    limits: Limits
    inputs: Inputs
    decoder_of: DecoderOf = no_decoder

    def erase(self, candidates: Iterable[Candidate], *, dry_run: bool) -> Iterator[HeldInput]:
        """Search these files; yields those that contained a value, or may still contain one."""
        by_uri = defaultdict[str, list[Candidate]](list)
        for each in candidates:
            by_uri[each.uri].append(each)
        searched = map_ordered(self._searched, by_uri.values())
        for held, etag in filter(None, self.state.meter.each("file", searched, len(by_uri))):
            yield self._deleted(held, etag) if held.deleted and not dry_run else held

    def _deleted(self, held: HeldInput, etag: str) -> HeldInput:
        try:
            # guard: a file replaced since the search is not deleted
            if not self.state.store.delete_version(held.uri, etag):  # others were searched meanwhile
                return replace(held, deleted=False, why=_REPLACED)
        except AccessError as exc:
            return replace(held, deleted=False, why=f"it cannot be deleted: {exc}")
        return held

    def _searched(self, candidates: Sequence[Candidate]) -> tuple[HeldInput, str] | None:
        """The finding in a file, and the searched version; None if it contains no value or is missing."""
        first = candidates[0]
        try:
            if any(each.is_named for each in candidates):
                info = self.state.store.stat(first.uri)
                etag = None if info is None else info.etag
            else:
                longest = max(each.max_line_bytes for each in candidates) or self.limits.max_line_bytes
                etag = self._version_with_a_value(first, replace(self.limits, max_line_bytes=longest))
        except (FileError, AccessError, LinkRefused, ObjectChanged) as exc:
            fault = f"{exc.status}: {exc}" if isinstance(exc, FileError) else str(exc)
            return HeldInput(first.uri, first.manifest_id, deleted=False, why=f"it cannot be searched: {fault}"), ""
        if etag is None:
            return None
        whys = [self._why_kept(each, etag) for each in candidates]
        # A different manifest with the same lines is no reason to keep a file; these two reasons are.
        why = next((each for each in whys if each in (NEEDED, ONLY_THERE)), min(whys, key=bool))
        return HeldInput(first.uri, first.manifest_id, deleted=not why, why=why), etag

    def _why_kept(self, each: Candidate, etag: str) -> str:
        if each.kept_because or each.is_own:
            return each.kept_because
        # guard: a version of an input file that was not compacted is not deleted
        if not each.etag or etag != each.etag:
            return _REPLACED
        return "" if self.inputs == "delete" else _ASKED

    def _version_with_a_value(self, file: Candidate, limits: Limits) -> str | None:
        """The current version of a file if it contains a value; None if not, or if the file is missing.

        The file is decoded and split as in compaction, in memory that does not grow with it. A line longer than
        `limits` is searched in pieces, as if it were not JSON.
        """
        try:
            opened = open_file(self.state.store, ManifestFile(uri=file.uri), any_version=True)
            lines = _Lines(self.wanted)
            decoder = self.decoder_of(file.grok) if file.grok else None
            with reading(self.state.store, opened) as data:
                inspect_lines(
                    decode(sniff(opened.first[:SNIFF_BYTES]), data),
                    limits,
                    on_reject=lines.on_reject,
                    on_good=lines.on_good,
                    split=recorded_splitter(file.place, decoder, may_have_hole=not file.is_own),
                    key_limits=NO_NEW_KEYS,
                )
        except _Found:
            return opened.etag
        except ObjectNotFound:
            return None
        except FileError as exc:
            if exc.status != "missing":
                raise
        return None


class _Found(Exception):
    """A line contains a value; the rest need not be read."""


class _Lines:
    """Searches line by line, and raises `_Found` at the first line that contains a value."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._pieces = Pieces(wanted)

    def on_good(self, block: bytes) -> None:
        if self._wanted.may_be_in(block) and any(map(self._wanted.in_line, block.split(b"\n")[:-1])):
            raise _Found

    def on_reject(self, reject: Reject) -> None:
        if self._pieces.holds(reject.line_number, rejected_record(reject.raw, reject.fields)):
            raise _Found
