"""A quarantined version of a file, as every command shows it, and whether it is settled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from compactor.core.documents.dismissals import Dismissal, How
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, FileStatus
from compactor.core.errors import AccessError, ObjectNotFound, StuckError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.rules.next_steps import Cause, cause_of
from compactor.ledger.history.dismissals import Dismissals
from compactor.ledger.history.redrive_log import RedriveLog, taken_from
from compactor.ledger.history.unsummarised import Unsummarised, summarised_since, unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.redrive.settling.later_rows import KnownRows, Version, later_rows, searched_from


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """An input file that was quarantined whole."""

    manifest_id: str
    uri: str
    status: FileStatus  # why it was quarantined
    detail: str  # what was found, and what was expected
    committed_at: datetime  # when its manifest was committed
    redriven: bool | None  # whether it was redriven since; None where that could not be read
    started_at: datetime  # when the attempt began that quarantined it
    # The manifest that compacted a later version of the file, or who dismissed it and why; empty if none is known
    settled_by: str = ""
    dismissed: How | Literal[""] = ""  # how it was given up; empty if it was not

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, compacted in a later version, or given up."""
        return self.redriven is True or bool(self.settled_by)

    @property
    def cause(self) -> Cause:
        """Why it waits, if it is open: what to do follows from that."""
        return cause_of(self.uri, self.status, self.detail)

    @property
    def ended(self) -> str:
        """What settled it, in one word or two; empty if it is open."""
        return self.dismissed or ("later version" if self.settled_by else "redriven" if self.redriven else "")

    @property
    def fate(self) -> str:
        """What settled it, in words."""
        if self.dismissed:
            return self.settled_by
        if self.settled_by:
            return f"a later version was compacted by manifest {self.settled_by}"
        return "redriven since" if self.redriven else "not settled: no later version was compacted"


def quarantined_files(commit: Commit, committed_at: datetime | None = None) -> list[QuarantinedFile]:
    """The files of a commit that need an operator, before anything is read of what settled them.

    Args:
        commit: The commit.
        committed_at: When it was made, if another clock than that of its record is to be believed.
    """
    moment = committed_at or commit.decided_at
    return [
        QuarantinedFile(commit.manifest_id, each.uri, each.status, each.detail, moment, None, commit.started_at)
        for each in commit.files
        if each.status in NEEDS_OPERATOR
    ]


def settled(
    state: State,
    files: Sequence[QuarantinedFile],
    keys: Iterable[ManifestKey] | None = None,
    known: KnownRows | None = None,
) -> list[QuarantinedFile]:
    """Quarantined files, with what settled each. The one rule, for all commands.

    A quarantined version of a file is settled once it was redriven, or once an attempt that began later compacted that
    file. A version that was quarantined then settles nothing, and neither does a file that is gone. A person may
    dismiss it; see `Dismissal`.

    Args:
        state: Has the records.
        files: The files, of any manifests.
        keys: The manifests that may have later versions; None for all that were written since.
        known: Rows that were found before; gets those that are found now.
    """
    checked = _with_dismissals(state, _with_redrives(state, files))
    left = [each for each in checked if not each.is_settled]
    if not left:
        return checked
    found = later_rows(state, [_version(each) for each in left], keys, known)
    return [each if each.is_settled else replace(each, settled_by=found.get(_version(each), "")) for each in checked]


def settled_among_all(state: State, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
    """Quarantined files, with what settled each, whatever manifest that is; see `settled`."""
    found = unsummarised_if_readable(state) if files else None
    moments = [each.started_at for each in files]
    return settled(state, files, None if found is None else later_keys(state, found, moments))


def later_keys(state: State, found: Unsummarised, moments: Sequence[datetime]) -> Iterator[ManifestKey]:
    """The manifests that may settle what was begun or decided then: those in no summary, and newer members."""
    yield from found.keys
    if moments:
        yield from summarised_since(state, found.totals, searched_from(moments))


def _version(file: QuarantinedFile) -> Version:
    return Version(file.manifest_id, file.uri, file.started_at)


def _with_dismissals(state: State, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
    """The files, with who dismissed those that were not redriven."""
    ids = list(dict.fromkeys(each.manifest_id for each in files if not each.is_settled))
    found = dict(zip(ids, map_ordered(partial(_in_effect, state), ids), strict=True))

    def marked(file: QuarantinedFile) -> QuarantinedFile:
        dismissal = None if file.is_settled else found[file.manifest_id].get(file.uri)
        return file if dismissal is None else replace(file, settled_by=dismissal.words, dismissed=dismissal.how)

    return list(map(marked, files))


def _in_effect(state: State, manifest_id: str) -> Mapping[str, Dismissal]:
    """The dismissals of a manifest; none if they cannot be read, so that its files still need an operator."""
    try:
        return {each.uri: each for each in Dismissals(state).of(manifest_id) if _still_holds(state, each)}
    except (ObjectNotFound, StuckError):
        return {}


def _still_holds(state: State, dismissal: Dismissal) -> bool:
    """Whether what was found is so now; what a person said stays."""
    if dismissal.how == "removed":
        return is_gone(state, dismissal.uri, otherwise=True)
    return dismissal.how != "excluded" or state.rules.excludes(dismissal.uri)


def is_gone(state: State, uri: str, *, otherwise: bool) -> bool:
    """Whether there is no such object; `otherwise` where it may not be asked for."""
    try:
        return state.store.stat(uri) is None
    except AccessError:
        return otherwise


def _with_redrives(state: State, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
    """The files, with whether they were redriven where that can be read."""
    manifest_ids = list(dict.fromkeys(each.manifest_id for each in files))
    taken = dict(zip(manifest_ids, map_ordered(partial(_taken, RedriveLog(state=state)), manifest_ids), strict=True))
    return [_marked(each, taken[each.manifest_id]) for each in files]


def _taken(log: RedriveLog, manifest_id: str) -> set[str] | None:
    """The files of a manifest that were redriven; None if that cannot be read."""
    try:
        redrives = taken_from(manifest_id, log.entries_about(manifest_id))
    except (ObjectNotFound, StuckError):
        return None
    return {file.redriven_uri for each in redrives if each.kind == "files" for file in each.manifest.files}


def _marked(file: QuarantinedFile, taken: set[str] | None) -> QuarantinedFile:
    return file if taken is None else replace(file, redriven=file.uri in taken)
