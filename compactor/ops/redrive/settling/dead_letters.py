"""Whether a dead letter is settled. The one rule, for all commands."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from compactor.core.documents.records import DeadLetter
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import redriven_id, root_id
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.redrive_log import RedriveLog, was_redriven
from compactor.ledger.history.unsummarised import unsummarised_if_readable
from compactor.ledger.state import State
from compactor.ops.redrive.settling.duplicates import settled_duplicates
from compactor.ops.redrive.settling.later_rows import KnownRows, Version, later_rows, searched_from, written_since
from compactor.ops.redrive.settling.quarantined_file import later_keys


@dataclass(frozen=True, slots=True)
class LetterFate:
    """What became of a dead letter.

    Attributes:
        redriven: Whether it was redriven; None where that could not be read.
        settled_by: If it was not, the manifest that took over its last file, or of which it is a duplicate that adds
            nothing; empty if files of it are left.
    """

    redriven: bool | None
    settled_by: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it needs no operator any more."""
        return self.redriven is True or bool(self.settled_by)


def letter_fates(
    state: State,
    manifest_ids: Sequence[str],
    fresh: Iterable[ManifestKey] | None = None,
    known: KnownRows | None = None,
) -> dict[str, LetterFate]:
    """What became of dead letters, by id.

    A dead letter is settled once it was redriven, or once later manifests were committed that have rows of each of its
    files: of the version that it names, or of a later one. So it is when a redrive claims its files and dies before its
    record, and a plan takes them over. A file that had changed by then needs no rows: its new version has its own
    event. A refused duplicate of a planned manifest is settled once that is committed; see `settled_duplicates`.

    Args:
        state: Has the records.
        manifest_ids: The dead letters.
        fresh: If the letters are in summaries, the manifests that were in none by then: one of them took over the last
            file, or none did. None if they may be any.
        known: What was found before; gets what is found now.
    """
    redriven = dict(zip(manifest_ids, map_ordered(partial(_was_redriven, state), manifest_ids), strict=True))
    open_ids = [each for each, is_one in redriven.items() if is_one is False]
    named = dict(zip(open_ids, map_ordered(partial(named_versions, state), open_ids), strict=True))
    taken = settled_duplicates(state, open_ids) | taken_over(state, named, fresh, known)
    return {each: LetterFate(redriven[each], taken.get(each, "")) for each in manifest_ids}


def taken_over(
    state: State,
    named: Mapping[str, Sequence[Version]],
    fresh: Iterable[ManifestKey] | None = None,
    known: KnownRows | None = None,
) -> dict[str, str]:
    """The manifest that took over the last file, by dead letter; those of which files are left are left out.

    Args:
        state: Has the records.
        named: By dead letter, none of them redriven, the versions that it names.
        fresh: As for `letter_fates`.
        known: What was found before; gets what is found now.
    """
    versions = {each: found for each, found in named.items() if found}
    if versions and fresh is not None:
        found = later_rows(state, _all(versions), fresh)
        versions = {each: those for each, those in versions.items() if any(version in found for version in those)}
    if not versions:
        return {}
    keys = _later_keys(state, _all(versions))
    if known is not None:
        known.keep_only({key.id for key in keys})
    taken = later_rows(state, _all(versions), keys, known)
    return {each: taken[those[-1]] for each, those in versions.items() if all(version in taken for version in those)}


def was_interrupted(state: State, manifest_id: str) -> bool:
    """Whether a redrive in the lineage of a dead letter lost its claims before it was on record."""
    ids = (redriven_id(root_id(manifest_id), number) for number in count(1))
    try:
        for record in map(state.ledger.accepted, ids):
            if record is None or record.kind == "revoked":
                return record is not None
    except StuckError:
        pass
    return False


def _was_redriven(state: State, manifest_id: str) -> bool | None:
    try:
        return was_redriven(manifest_id, RedriveLog(state=state).entries_about(manifest_id))
    except (ObjectNotFound, StuckError):  # `verify` says what is wrong
        return None


def named_versions(state: State, manifest_id: str) -> list[Version]:
    """The versions that a dead letter names; none if its manifest could not be read."""
    try:
        accepted = state.ledger.accepted(manifest_id)
        if accepted is None or accepted.manifest is None:
            return []
        decided_at = state.ledger.outcome_of(accepted.key, DeadLetter.generation).decided_at
    except (ObjectNotFound, StuckError):
        return []
    return [Version(manifest_id, file.uri, decided_at, file.etag or "") for file in accepted.manifest.files]


def _all(versions: Mapping[str, Sequence[Version]]) -> list[Version]:
    return [each for named in versions.values() for each in named]


def _later_keys(state: State, versions: Sequence[Version]) -> list[ManifestKey]:
    """All manifests that may have taken over a file."""
    moments = sorted({each.started_at for each in versions})
    found = unsummarised_if_readable(state)
    if found is None:
        return list(written_since(state, searched_from(moments)))
    return list(dict.fromkeys(later_keys(state, found, moments)))
