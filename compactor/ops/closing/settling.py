"""Finds what was settled since its date was closed, so that the log need not name it any longer."""

from collections.abc import Sequence
from functools import partial

from compactor.core.closed_dates import ClosedTotals, SettledFile
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.core.records import Redrive
from compactor.ledger.state import State
from compactor.ops.redrive.dead_letters import letter_fates
from compactor.ops.redrive.quarantined_file import settled
from compactor.ops.redrive.redrive_log import RedriveLog
from compactor.ops.verify.summaries import quarantined_file


def settled_letters(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[str]:
    """Those dead letters whose redrive is accepted, or of which one of these manifests took over the last file."""
    ids = [each.manifest_id for each in totals.letters]
    redrives = dict(zip(ids, map_ordered(partial(_accepted_redrives, state), ids), strict=True))
    fates = letter_fates(state, ids, keys)
    return [
        manifest_id
        for manifest_id, found in redrives.items()
        if any(each.kind == "manifests" for each in found or ()) or fates[manifest_id].settled_by
    ]


def settled_files(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[SettledFile]:
    """Those quarantined files whose redrive is accepted, or of which one of these manifests has a later version."""
    files = [quarantined_file(each) for each in totals.quarantined]
    ids = list(dict.fromkeys(each.manifest_id for each in files))
    redrives = dict(zip(ids, map_ordered(partial(_accepted_redrives, state), ids), strict=True))
    return [
        SettledFile(manifest_id=each.manifest_id, uri=each.uri)
        for each in settled(state, files, keys)
        if (found := redrives[each.manifest_id]) is not None and (each.settled_by or each.uri in _taken(found))
    ]


def _taken(redrives: Sequence[Redrive]) -> set[str]:
    return {file.uri for each in redrives if each.kind == "files" for file in each.manifest.files}


def _accepted_redrives(state: State, manifest_id: str) -> list[Redrive] | None:
    """The redrives of a manifest, if each of them is accepted or revoked for good; else None."""
    try:
        entries = RedriveLog(state=state).entries_about(manifest_id)
    except (ObjectNotFound, StuckError):  # a person has to check
        return None
    own = [each for each in entries if each.redrive.source == manifest_id]
    if any(each.fate not in {"accepted", "revoked"} for each in own):
        return None
    return [each.redrive for each in own if each.in_effect]
