"""Keeps the input files that were replaced: a version without rows, of a file of which an earlier version has rows.

Plans find and record them, for they compare all files with the manifests. The record of a file holds its latest such
version, as long as the file is that version and no manifest has its rows.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial

from compactor.core.documents.records import ReplacedFile
from compactor.core.errors import AccessError, RecordUnreadable
from compactor.core.layout import canonical
from compactor.core.map_ordered import map_ordered
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.state import State


def note_replaced(state: State, found: Iterable[ReplacedFile], is_listed: Callable[[str], bool]) -> None:
    """Record the replaced files that a plan found, and forget all others that it listed.

    Args:
        state: Has the records.
        found: The files.
        is_listed: Whether the plan listed a file, by its canonical URI, if it exists.
    """
    now = {state.layout.replaced_file(each.uri): each for each in found}
    known = dict(_records(state))
    state.store.delete([uri for uri, each in known.items() if uri not in now and is_listed(canonical(each.uri))])
    for uri, each in now.items():
        if uri not in known or (known[uri].etag, known[uri].detail) != (each.etag, each.detail):
            state.store.put(uri, each.to_json())


def replaced_files(state: State, of: Collection[str] | None = None) -> list[QuarantinedFile]:
    """The replaced files that still are the version without rows, not considering what may have settled them.

    Args:
        state: Has the records.
        of: Only files whose earlier rows are in one of these manifests; None for all.
    """
    records = (each for _, each in _records(state) if of is None or each.manifest_id in of)
    return [found for found in map_ordered(partial(_file, state), records) if found]


def _records(state: State) -> Iterable[tuple[str, ReplacedFile]]:
    for info in state.store.list(state.layout.replaced_folder):
        try:
            record = ReplacedFile.find(state.store, info.uri)
        except RecordUnreadable:  # the next plan writes it again
            continue
        if record is not None:
            yield info.uri, record


def _file(state: State, record: ReplacedFile) -> QuarantinedFile | None:
    try:
        info = None if state.rules.excludes(record.uri) else state.store.stat(record.uri)
    except AccessError:
        return None
    if info is None or info.etag != record.etag:
        return None
    at, uri = record.found_at, record.uri
    return QuarantinedFile(record.manifest_id, uri, "replaced", record.detail, at, False, at, etag=record.etag)
