"""Decides the final names of rebuilt files, so that readers may miss rows for a moment but never see a row twice.

A name of the superseded commit is reused if the file there cannot double rows: it is missing, or has the rows of the
staged file that replaces it. Any other file is deleted before a rebuilt one is published, and its name is never used
again, so that a late driver may still delete it. A single file with other rows is replaced first instead, in one step.

A file without a footer keeps its name only if no file has other rows. Otherwise a query that has read those could find
some of them again in the replacement.

With partitions no name is reused: each name includes a partition, and a rebuild may divide rows differently. Nor is the
name of a file in place: a rebuild writes such files under their final names.
"""

from collections.abc import Callable, Collection, Sequence
from enum import Enum
from functools import partial
from itertools import count

from compactor.core.documents.changes import Commit, StagedFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import CompactorError, StagingError
from compactor.core.layout import Layout, part_number
from compactor.core.partitions import folders, parse_fields
from compactor.core.ports import ObjectStore
from compactor.engines.parquet_files import open_parquet
from compactor.table.merging.same_rows import has_same_rows


class Found(Enum):
    """The file that readers find under a final name, compared with a staged file that may replace it."""

    NOTHING = "nothing"
    UNREADABLE = "unreadable"  # no footer: readers fail
    SAME_ROWS = "same rows"  # in the same order
    OTHER_ROWS = "other rows"


def found_at(store: ObjectStore, uri: str, staged: str | None) -> Found:
    """Compare the file under a final name with a staged file.

    Args:
        store: Source of both files.
        uri: The file that readers may see.
        staged: The file to compare with; None for no rows.
    """
    try:
        old, _ = open_parquet(store, uri)
    except StagingError:
        return Found.NOTHING if store.stat(uri) is None else Found.UNREADABLE
    if staged is None:
        return Found.OTHER_ROWS if old.metadata.num_rows else Found.SAME_ROWS
    new, _ = open_parquet(store, staged)
    if old.metadata.num_rows != new.metadata.num_rows:
        return Found.OTHER_ROWS
    try:
        is_same = has_same_rows(old, new)
    except CompactorError:
        raise
    except Exception:  # noqa: BLE001 - readers of damaged bytes raise errors of any type
        return Found.OTHER_ROWS  # readers of other columns may still find rows
    return Found.SAME_ROWS if is_same else Found.OTHER_ROWS


FoundAt = Callable[[str, str | None], Found]
"""Compares the file under a final name with a staged file, or with no rows for None; see `found_at`."""


def successor(
    layout: Layout,
    previous: Commit,
    staged: Commit,
    why: str,
    found_at: FoundAt,
    expired: Collection[str] = frozenset(),
    *,
    reuses_names: bool = True,
) -> Commit:
    """The commit that supersedes an earlier one with the same rows.

    Args:
        layout: Source of the names.
        previous: The commit whose files are lost or damaged.
        staged: The newly staged commit, with compacted files only.
        why: The fault in the previous files.
        found_at: Compares a published file with a staged one.
        expired: Names that retention may delete at any time: they are not reused.
        reuses_names: Whether rows may get a name that readers may have open: never if a table lists it.
    """
    finals = [file.final for file in (*previous.outputs, *previous.rejects)]
    unused = count(max(map(part_number, (*finals, *previous.removes)), default=0) + 1)
    fresh = partial(next, unused)
    fields = parse_fields(staged.partition_by)

    def place_output(part: int, file: StagedFile) -> str:
        if file.is_in_place:  # guard: a rebuild names what it wrote in place where it is
            return file.final
        return layout.output_file(staged.key, part, folders(fields, tuple(file.partition)))

    def place_rejects(part: int, _: StagedFile) -> str:
        return layout.rejects_file(staged.key, part)

    # guard: a rebuild reuses no name of a partition
    reuses_names = reuses_names and not (fields or previous.partition_by)
    reused = [file for file in previous.outputs if reuses_names and not file.is_in_place]
    outputs = _final_files(reused, staged.outputs, place_output, fresh, found_at)
    # guard: a rebuild never uses a name of expired rejects again
    kept = [file for file in previous.rejects if file.final not in expired]
    rejects = _final_files(kept, staged.rejects, place_rejects, fresh, found_at)
    used = {file.final for file in (*outputs, *rejects)}
    removes = sorted({*finals, *previous.removes} - used)
    return staged.model_copy(
        update={
            "reason": why,
            "removes": removes,
            "outputs": outputs,
            "rejects": rejects,
            "files": _reports(previous.files, staged.files),
        }
    )


def _final_files(
    previous: Sequence[StagedFile],
    staged: Sequence[StagedFile],
    place: Callable[[int, StagedFile], str],
    fresh: Callable[[], int],
    found_at: FoundAt,
) -> list[StagedFile]:
    """The staged files with their final names, in publishing order."""
    finals = sorted(file.final for file in previous)
    # Other names are from earlier settings.
    usable = sorted(file.final for file in previous if file.final == place(part_number(file.final), file))
    names = (usable + [place(fresh(), file) for file in staged[len(usable) :]])[: len(staged)]
    counterparts = dict(zip(names, staged, strict=True))
    found = {uri: found_at(uri, counterparts[uri].staged if uri in counterparts else None) for uri in finals}
    others = [uri for uri in finals if found[uri] is Found.OTHER_ROWS]
    given_up = {uri for uri in finals if others and found[uri] is Found.UNREADABLE}
    if len(others) == 1 and others[0] in counterparts:
        names = sorted(names, key=lambda name: name != others[0])
    else:
        given_up.update(others)
    made = ((name, counterparts[name]) for name in names)
    return [
        file.model_copy(update={"final": place(fresh(), file) if name in given_up else name}) for name, file in made
    ]


def _reports(previous: Sequence[FileReport], staged: Sequence[FileReport]) -> list[FileReport]:
    """One report per file of the manifest. Quarantined files stay quarantined, without kept samples."""
    again = {file.uri: file for file in staged}
    return [
        again[file.uri].model_copy(update={"superseded": file.superseded})
        if file.status is FileStatus.COMPACTED
        else file.model_copy(update={"reject_rows": 0})
        for file in previous
    ]
