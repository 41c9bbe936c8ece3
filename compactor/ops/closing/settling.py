"""Finds what was settled since its date was closed, so that the log need not name it any longer."""

from collections.abc import Sequence

from compactor.core.closed_dates import ClosedTotals, SettledFile
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.ops.redrive.quarantined_file import settled
from compactor.ops.redrive.redrive_log import RedriveLog, taken_from, was_redriven
from compactor.ops.verify.summaries import quarantined_file


def redriven_letters(state: State, totals: ClosedTotals) -> list[str]:
    """Those dead letters whose redrive is accepted, by id."""
    ids = [each.manifest_id for each in totals.letters]
    found = map_ordered(lambda manifest_id: _lasting(state, manifest_id, is_letter=True) is not None, ids)
    return [manifest_id for manifest_id, is_one in zip(ids, found, strict=True) if is_one]


def settled_files(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[SettledFile]:
    """Those quarantined files whose redrive is accepted, or of which one of these manifests has a later version."""
    files = [quarantined_file(each) for each in totals.quarantined]
    ids = list(dict.fromkeys(each.manifest_id for each in files))
    redriven = dict(zip(ids, map_ordered(lambda each: _lasting(state, each, is_letter=False), ids), strict=True))
    return [
        SettledFile(manifest_id=each.manifest_id, uri=each.uri)
        for each in settled(state, files, keys)
        if each.settled_by or each.uri in (redriven[each.manifest_id] or ())
    ]


def _lasting(state: State, manifest_id: str, *, is_letter: bool) -> set[str] | None:
    """The files that accepted redrives of a manifest took; None if there is no such redrive, or one may be revoked."""
    try:
        entries = RedriveLog(state=state).entries_about(manifest_id)
    except (ObjectNotFound, StuckError):  # a person has to check
        return None
    own = [each for each in entries if each.redrive.source == manifest_id]
    if any(each.fate not in {"accepted", "revoked"} for each in own):
        return None
    if is_letter and not was_redriven(manifest_id, entries):
        return None
    taken = [each for each in taken_from(manifest_id, entries) if each.kind == "files"]
    return {file.uri for each in taken for file in each.manifest.files}
