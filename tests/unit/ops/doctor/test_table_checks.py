"""What the doctor says of a table of Iceberg: whether its catalog answers, and whose table it is."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from compactor.core.errors import AccessError, CompactorError, ExtraMissing, OperatorError, StoreUnavailable
from compactor.ops.doctor.service_checks import iceberg_table
from compactor.table.catalog import TableCatalog, TableChange
from compactor.table.standing import ListedTable
from tests.support.iceberg_tables import NAME, sql_place
from tests.support.memory_table import MemoryTable
from tests.support.settings_files import write_settings
from tests.support.table_catalogs import OWNER, version


def listed(catalog: Callable[[], TableCatalog]) -> ListedTable:
    return ListedTable(name="lake.events", catalog=catalog, late_seconds=60.0)


def test_a_table() -> None:
    """Before the first commit there is none; then it has its batches; and one of another state may not be used."""
    table = MemoryTable()
    found = iceberg_table(listed(lambda: table), OWNER)
    assert (found.state, found.found) == ("ok", "lake.events: the catalog answers; the first commit makes the table")
    table.commit(table.create(OWNER, version(1)), TableChange(1, ()))
    assert iceberg_table(listed(lambda: table), OWNER).found == "lake.events: up to batch 1"
    other = iceberg_table(listed(lambda: table), "s3://other/state/")
    assert (other.state, other.next_move) == ("fault", "set a different table in table.name")


@pytest.mark.parametrize(
    ("error", "move"),
    [
        (ExtraMissing("pyiceberg is not installed"), "install it in the Python"),
        (AccessError("permission denied (403)"), "allow reading and committing"),
        (StoreUnavailable("does not answer"), "correct table.uri"),
        (OperatorError("has no property -> expected a table created by the compactor"), "expected a table created"),
        (OperatorError("refuses"), "correct the section [table]"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
def test_a_catalog_that_cannot_be_used(error: CompactorError, move: str) -> None:
    """Each fault has its own next action."""

    def refuse() -> TableCatalog:
        raise error

    found = iceberg_table(listed(refuse), OWNER)
    assert (found.state, found.next_move.startswith(move)) == ("fault", True)


def test_the_command(tmp_path: Path) -> None:
    """It opens the catalog of the settings."""
    place = sql_place(tmp_path)
    table = {"catalog": "sql", "uri": place.uri, "warehouse": place.warehouse, "name": NAME}
    (tmp_path / "raw").mkdir()
    config = write_settings(tmp_path, table=table)

    def state() -> list[str]:
        done = CliRunner().invoke(command, ["--config", str(config), "doctor", "--elsewhere", "--json"])
        return [each["state"] for each in json.loads(done.stdout)["findings"] if each["name"] == "iceberg table"]

    assert state() == ["ok"]
    table["uri"] = "sqlite:////no/such/folder/catalog.db"
    write_settings(tmp_path, table=table)
    assert state() == ["fault"]
