"""A folder whose output a table lists, in a catalog in SQLite."""

from collections.abc import Collection, Mapping
from pathlib import Path

from compactor.cli.ui.failures import ExitCode
from tests.support.iceberg_tables import NAME, sql_place
from tests.support.settings_files import write_settings
from tests.support.workspace import DAY, Workspace


def table_workspace(
    root: Path, files: Mapping[str, bytes], codes: Collection[ExitCode] = (ExitCode.DONE,)
) -> Workspace:
    """Make a workspace whose table has a manifest for each file.

    Args:
        root: Its folder.
        files: The lines of each file by its name.
        codes: The exit codes that a run may have.
    """
    place = sql_place(root)
    config = write_settings(
        root,
        table={"catalog": "sql", "uri": place.uri, "warehouse": place.warehouse, "name": NAME},
        stream={"source": "listing"},
        convert={"engine": "native"},
    )
    (root / "raw").mkdir()
    made = Workspace(root, config)
    for name, lines in files.items():
        (root / "raw" / f"{DAY}-{name}.ndjson").write_bytes(lines)
        made.plan()
        result = made.call("run", "--once")
        assert result.exit_code in codes, result.output
    return made
