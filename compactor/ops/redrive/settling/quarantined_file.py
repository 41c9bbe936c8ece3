"""A quarantined version of a file, as every command shows it, and whether it is settled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from compactor.core.documents.accepted_losses import AcceptedLoss
from compactor.core.documents.records import NEEDS_OPERATOR, Commit, FileStatus
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.inputs.topics_and_streams import is_topic_or_stream
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.accepted_losses import AcceptedLosses
from compactor.ledger.history.redrive_log import RedriveLog, taken_from
from compactor.ledger.history.unsummarised import Unsummarised, summarised_since, unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.redrive.settling.later_rows import KnownRows, Version, later_rows, searched_from

_ACCEPTED = "loss accepted by "


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
    # The manifest that compacted a later version of the file, or who accepted its loss and why; empty if none is known
    settled_by: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more: it was redriven, compacted in a later version, or given up."""
        return self.redriven is True or bool(self.settled_by)

    @property
    def is_given_up(self) -> bool:
        """Whether a person accepted that it is gone."""
        return self.settled_by.startswith(_ACCEPTED)


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
    file. A version that was quarantined then settles nothing, and neither does a file that is gone. Of a range of a
    topic or stream that is gone, a person may accept that.

    Args:
        state: Has the records.
        files: The files, of any manifests.
        keys: The manifests that may have later versions; None for all that were written since.
        known: Rows that were found before; gets those that are found now.
    """
    checked = _with_losses(state, _with_redrives(state, files))
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


def _with_losses(state: State, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
    """The files, with who accepted that a range of a topic or stream is gone."""
    ranges = [each for each in files if is_topic_or_stream(each.uri)]
    gone = [each for each in ranges if not each.is_settled]
    ids = list(dict.fromkeys(each.manifest_id for each in gone))
    losses = dict(zip(ids, map_ordered(partial(_accepted, AcceptedLosses(state)), ids), strict=True))
    words = {
        (each.manifest_id, each.uri): _words(loss)
        for each in gone
        if (loss := losses[each.manifest_id].get(each.uri)) is not None
    }
    return [replace(each, settled_by=words.get((each.manifest_id, each.uri), each.settled_by)) for each in files]


def _words(loss: AcceptedLoss) -> str:
    unasked = ", without asking brokers" if loss.unasked else ""
    return f"{_ACCEPTED}{loss.by} at {loss.accepted_at:%Y-%m-%d %H:%M:%S} UTC{unasked}: {loss.why}"


def _accepted(losses: AcceptedLosses, manifest_id: str) -> Mapping[str, AcceptedLoss]:
    """The accepted losses of a manifest; none if they cannot be read, so that it still needs an operator."""
    try:
        return losses.of(manifest_id)
    except (ObjectNotFound, StuckError):
        return {}


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
