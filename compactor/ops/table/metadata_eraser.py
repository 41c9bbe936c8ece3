"""Removes from the table's metadata what it still reveals of erased rows: the manifests of earlier snapshots.

A manifest has the lowest and highest values of the files that it lists. No change can need what earlier snapshots
listed and nothing lists any more: a change that was prepared on an earlier snapshot cannot land. So nothing has to
reach an age first.
"""

from compactor.core.documents.table_records import DoomedMetadata
from compactor.core.errors import ObjectNotFound
from compactor.core.text.formatting import count
from compactor.ledger.state import State
from compactor.ops.table.maintainer import Maintainer
from compactor.table.catalog import TableCatalog

_BY_COMMITS = ".avro"  # lists of manifests and manifests; the other files of metadata have no values


def erase_metadata(maintainer: Maintainer) -> list[str]:
    """Expire snapshots and remove their files; return why something is left, in words. Safe beside jobs and itself.

    Args:
        maintainer: Merges manifests in any case, and expires all snapshots but the current one.

    Raises:
        TryAgainError: As `Maintainer.maintain`; another call goes on.
        OperatorError: A person must act.
    """
    state, catalog, names = maintainer.state, maintainer.catalog, list[str]()
    if (before := catalog.folder()) is not None:
        # guard: an erasure that died finds what to remove of the table's metadata
        names = sorted({*_doomed(state), *before.named})
        state.store.put(state.layout.doomed_metadata, DoomedMetadata(names=names).to_json())
    report = maintainer.maintain()
    if report.keeps_all:
        return ["the table's property gc.enabled is false, so that its earlier snapshots stay, with values of rows"]
    after = catalog.folder() if before is not None else None
    if after is None:
        where = "the files of the table's metadata cannot be listed: its catalog has to remove earlier ones itself"
        return [where] if report.exists else []
    going = {*names} - after.named  # guard: metadata that the table needs is not removed by an erasure
    catalog.remove(each.name for each in after.files if each.name in going and each.name.endswith(_BY_COMMITS))
    kept = _kept(catalog)
    if not kept and _doomed(state) <= {*names}:  # another erasure may have added some
        state.store.delete([state.layout.doomed_metadata])
    return kept


def _doomed(state: State) -> frozenset[str]:
    uri = state.layout.doomed_metadata
    try:
        data = state.store.read(uri)
    except ObjectNotFound:
        return frozenset()
    return frozenset(DoomedMetadata.read(data, uri, "names of files").names)


def _kept(catalog: TableCatalog) -> list[str]:
    """Why earlier snapshots stay, if something asks the table to keep them."""
    found = catalog.history()
    if found is None:
        return []
    head, history = found
    asking = sum(
        each.snapshot_id != head.snapshot_id or bool(each.keep_for) or each.keep_snapshots > 1 for each in history.refs
    )
    if not asking:
        return []
    them = count(asking, "branch, tag or property", "branches, tags or properties")
    return [f"{them} of the table may keep earlier snapshots, with values of rows: remove them, then run it again"]
