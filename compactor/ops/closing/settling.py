"""Finds what is settled, so that the log need not name it, or need not name it any longer.

What was redriven is settled once the redrive is accepted: one that was interrupted is found again by what is named.
"""

from collections.abc import Iterable, Sequence

from compactor.core.documents.closed_dates import ClosedTotals, SettledFile
from compactor.core.documents.records import Redrive
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Account, QuarantinedFile, redriven_uris
from compactor.ledger.accounts.reading import Detail, accounts_of
from compactor.ledger.accounts.settling import Settling, open_file
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
    return [each for each in left if each.uri not in redriven_uris(redrives.get(each.manifest_id) or ())]


def settled_files(state: State, totals: ClosedTotals, keys: Sequence[ManifestKey]) -> list[SettledFile]:
    """Those quarantined files whose redrive is accepted, or of which one of these manifests has a later version."""
    files = [open_file(each) for each in totals.quarantined]
    redrives = _redrives(state, (each.manifest_id for each in files))
    return [
        SettledFile(manifest_id=each.manifest_id, uri=each.uri)
        for each in Settling(state).files(files, keys)
        if (found := redrives[each.manifest_id]) is not None and (each.settled_by or each.uri in redriven_uris(found))
    ]


def _redrives(state: State, manifest_ids: Iterable[str]) -> dict[str, list[Redrive] | None]:
    """The redrives of manifests in effect; None where one of them is not accepted or revoked for good."""
    return {each.id: _final_redrives(each) for each in accounts_of(state, manifest_ids, Detail.LINEAGE)}


def _final_redrives(account: Account) -> list[Redrive] | None:
    if account.fault is not None:  # a person has to check
        return None
    # guard: a summary names what was redriven until the redrive is accepted
    if not account.redrives_are_final:
        return None
    return account.taken
