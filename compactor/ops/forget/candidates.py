"""Decides which input files have to be searched for values, and what may become of them. No I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from compactor.core.documents.records import (
    NEEDS_OPERATOR,
    Accepted,
    Commit,
    DeadLetter,
    FileFormat,
    FileReport,
    FileStatus,
    GrokRules,
    StagedFile,
)
from compactor.core.layout import Layout, redriven_owner
from compactor.core.partitions import parse_fields
from compactor.ops.forget.wanted import Wanted

_NOT_COMPACTED = "its other lines are in no output: redrive it, or delete it yourself"
_NOT_REDRIVEN = "no manifest that is done has it: if no redrive is at work, delete it yourself"
NEEDED = "its manifest could not be erased, and may have to be made again from it"
ONLY_THERE = "it alone has the bytes of rejected lines that were too many to keep: delete it yourself"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input file that may hold a value.

    Attributes:
        etag: The version that the compactor read; empty if it is not known.
        max_line_bytes: The longest line that was accepted; 0 if it is not known.
        grok: What read its lines; None if they are JSON, or if it is not known.
        is_own: It is the compactor's own copy of redriven lines.
        is_named: The folders of its path have a value.
        kept_because: Why it is not deleted, even if it may be asked for; empty if it can be.
    """

    uri: str
    manifest_id: str
    etag: str
    format: FileFormat
    max_line_bytes: int
    grok: GrokRules | None = None
    is_own: bool = False
    is_named: bool = False
    kept_because: str = ""

    def kept(self, why: str) -> "Candidate":
        """The same file, which is not to be deleted."""
        return replace(self, kept_because=why)


def candidates_of(
    commit: Commit, wanted: Wanted, layout: Layout, *, may_be_any: bool, may_be_rejected: bool
) -> Iterator[Candidate]:
    """The input files of a commit to search.

    Args:
        commit: The commit.
        wanted: The values.
        layout: Tells the compactor's own copies of redriven lines.
        may_be_any: Whether any of them may hold a value: its rows or rejects do, or did, or the rows expired.
        may_be_rejected: Whether rejected lines may hold one: the rejects expired.
    """
    for file in commit.files:
        is_named = names_value(file, wanted)
        is_alone = file.status in NEEDS_OPERATOR or bool(file.unkept_rejects)
        is_rejecting = may_be_rejected and bool(file.rejected_lines)
        if may_be_any or is_named or is_alone or is_rejecting:
            yield Candidate(
                uri=file.uri,
                manifest_id=commit.manifest_id,
                etag=file.etag,
                format=file.format,
                max_line_bytes=commit.max_line_bytes,
                grok=commit.grok,
                is_own=redriven_owner(file.uri, layout.redriven_folder) is not None,
                is_named=is_named,
                kept_because=_kept_because(file),
            )


def letter_candidates(accepted: Accepted | None) -> Iterator[Candidate]:
    """The input files of a dead letter, of which no output has any line."""
    if accepted is None or accepted.manifest is None:
        return
    for file in accepted.manifest.files:
        yield Candidate(file.uri, accepted.manifest_id, file.etag or "", "ndjson", 0, kept_because=_NOT_COMPACTED)


def copy_candidates(
    uris: Iterable[str], manifest_id: str, accepted: Accepted | None, outcome: Commit | DeadLetter | None
) -> Iterator[Candidate]:
    """The copies of lines that were redriven as one manifest, also those that it does not name.

    Args:
        uris: What is in its folder.
        manifest_id: Its id.
        accepted: Its acceptance; None if it was never accepted.
        outcome: Its outcome, if it is done.
    """
    needed, alone = set[str](), set[str]()
    if isinstance(outcome, Commit):
        needed = {file.uri for file in outcome.files if file.status is not FileStatus.COMPACTED}
        alone = {file.uri for file in outcome.files if file.unkept_rejects}
    elif accepted is not None and accepted.manifest is not None:
        needed = {file.uri for file in accepted.manifest.files}
    for uri in uris:
        kept = _NOT_COMPACTED if uri in needed else ONLY_THERE if uri in alone else ""
        kept = kept if outcome is not None else _NOT_REDRIVEN
        yield Candidate(uri, manifest_id, "", "ndjson", 0, is_own=True, kept_because=kept)


def names_value(file: FileReport, wanted: Wanted) -> bool:
    """Return whether the folders of the path of a file have a value."""
    return len(wanted.path) == 1 and file.path_columns.get(wanted.key) in wanted.values


def names_partition(commit: Commit, file: StagedFile, wanted: Wanted) -> bool:
    """Return whether the partition of an output file is that of a value."""
    fields = parse_fields(commit.partition_by)
    return len(wanted.path) == 1 and any(
        field.transform == "identity" and field.key == wanted.key and value in wanted.values
        for field, value in zip(fields, file.partition, strict=False)
    )


def _kept_because(file: FileReport) -> str:
    if file.status is not FileStatus.COMPACTED:
        return _NOT_COMPACTED
    return ONLY_THERE if file.unkept_rejects else ""
