"""Finds what is settled, so that the log need not name it, or need not name it any longer.

What was redriven is settled once the redrive is accepted: one that was interrupted is found again by what is named.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from compactor.core.documents.closed_dates import ClosedTotals, SettledFile
from compactor.core.documents.records import Redrive
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.accounts.settling import Settling, open_file
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.ops.verify.report import DeadLetterManifest


def settled_letters(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[str]:
    """Those dead letters whose redrive is accepted, or of which one of these manifests took over the last file."""
    ids = [each.manifest_id for each in totals.letters]
    redriven = set(_redriven_letters(state, ids))
    fates = Settling(state).letters([each for each in ids if each not in redriven], keys)
    return [each for each in ids if each in redriven or fates[each].settled_by]


def _redriven_letters(state: State, ids: Sequence[str]) -> list[str]:
    """Those dead letters whose redrive is accepted, by id."""
    found = _redrives(state, ids).items()
    return [manifest_id for manifest_id, redrives in found if any(each.kind == "manifests" for each in redrives or ())]


def open_letters(state: State, letters: Sequence[DeadLetterManifest]) -> list[DeadLetterManifest]:
    """Those verified dead letters that have to be named."""
    redriven = set(_redriven_letters(state, [each.manifest_id for each in letters if each.redriven]))
    return [each for each in letters if each.manifest_id not in redriven and not each.settled_by]


def open_files(state: State, files: Sequence[QuarantinedFile]) -> list[QuarantinedFile]:
    """Those verified quarantined files that have to be named."""
    left = [each for each in files if not each.settled_by]
    redrives = _redrives(state, (each.manifest_id for each in left if each.redriven))
    return [each for each in left if each.uri not in _taken(redrives.get(each.manifest_id) or ())]


def settled_files(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[SettledFile]:
    """Those quarantined files whose redrive is accepted, or of which one of these manifests has a later version."""
    files = [open_file(each) for each in totals.quarantined]
    redrives = _redrives(state, (each.manifest_id for each in files))
    return [
        SettledFile(manifest_id=each.manifest_id, uri=each.uri)
        for each in Settling(state).files(files, keys)
        if (found := redrives[each.manifest_id]) is not None and (each.settled_by or each.uri in _taken(found))
    ]


def _taken(redrives: Sequence[Redrive]) -> set[str]:
    return {file.redriven_uri for each in redrives if each.kind == "files" for file in each.manifest.files}


def _redrives(state: State, manifest_ids: Iterable[str]) -> dict[str, list[Redrive] | None]:
    ids = list(dict.fromkeys(manifest_ids))
    return dict(zip(ids, map_ordered(partial(_accepted_redrives, state), ids), strict=True))


def _accepted_redrives(state: State, manifest_id: str) -> list[Redrive] | None:
    """The redrives of a manifest, if each of them is accepted or revoked for good; else None."""
    try:
        entries = RedriveLog(state=state).entries_about(manifest_id)
    except (ObjectNotFound, StuckError):  # a person has to check
        return None
    own = [each for each in entries if each.redrive.source == manifest_id]
    # guard: a summary names what was redriven until the redrive is accepted
    if any(each.fate not in {"accepted", "revoked"} for each in own):
        return None
    return [each.redrive for each in own if each.in_effect]
