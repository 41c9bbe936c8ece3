"""One change of a table: prepared on the state that it was read in, and sent once."""

from collections.abc import Collection, Sequence

from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
)

_LAST_ADDED = -1


class Change(Transaction):
    """Updates of a table that hold together or not at all.

    pyiceberg would send a transaction again after a conflict, and delete the manifests of one that it believes to have
    failed. `send` does neither: a conflict may be the answer to a second delivery of a change that is in the table.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        snapshot = table.metadata.current_snapshot_id
        metadata = table.metadata
        self._stage(
            (),
            (
                AssertTableUUID(uuid=metadata.table_uuid),
                AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=snapshot),
                AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
                AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
            ),
        )

    def use_schema(self, schema: Schema) -> None:
        """Give the table these columns, with the ids that they have."""
        same = next((each for each in self._table.metadata.schemas if each == schema), None)
        if same is None:
            self._stage((AddSchemaUpdate(schema_=schema), SetCurrentSchemaUpdate(schema_id=_LAST_ADDED)))
        else:  # catalogs give equal schemas one number, by which the snapshot has to name it
            self._stage((SetCurrentSchemaUpdate(schema_id=same.schema_id),))

    def use_partitions(self, spec: PartitionSpec) -> None:
        """Partition the files of this and later changes so."""
        self._stage((AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate(spec_id=_LAST_ADDED)))

    def use_files(self, added: Sequence[DataFile], removed: Collection[DataFile], notes: dict[str, str]) -> int:
        """Make a snapshot with further files and without others, also for none of both: the table has to move on.

        Returns:
            Its id.
        """
        update = self.update_snapshot(snapshot_properties=notes)
        with update.overwrite() if removed else update.merge_append() as snapshot:
            for entry in added:
                snapshot.append_data_file(entry)
            for entry in removed:
                snapshot.delete_data_file(entry)
        return snapshot.snapshot_id

    def send(self, catalog: Catalog) -> CommitTableResponse:
        """Send all of it in one request."""
        return catalog.commit_table(self._table, self._requirements, self._updates)
