"""Finds the quarantined versions of an input file, which stay on record whatever came of the file later."""

from collections.abc import Iterable

from compactor.core.documents.records import Commit
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.layout import canonical
from compactor.core.manifest_key import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.state import State
from compactor.manifests.file_search import FileSearch
from compactor.ops.redrive.settling.quarantined_file import QuarantinedFile, quarantined_files, settled


def quarantined_versions(state: State, search: FileSearch, uri: str, dates: Iterable[str]) -> list[QuarantinedFile]:
    """The quarantined versions of a file, the first one first, with what settled each.

    Args:
        state: Has the records.
        search: Finds manifests that name the file.
        uri: The file.
        dates: The dates of the ledger to search.
    """
    wanted = {canonical(uri)}
    namings = search.on_dates(dict.fromkeys(dates, wanted))
    keys = {ManifestKey(each.date, each.manifest_id) for each in namings if each.state == "quarantined"}
    found = [file for files in map_ordered(lambda key: _files_of(state, key), keys) for file in files]
    own = sorted((file for file in found if canonical(file.uri) in wanted), key=lambda file: file.started_at)
    return settled(state, own)


def _files_of(state: State, key: ManifestKey) -> list[QuarantinedFile]:
    try:
        outcome = state.ledger.outcome(key)
    except (ObjectNotFound, RecordUnreadable):
        return []
    return quarantined_files(outcome) if isinstance(outcome, Commit) else []
