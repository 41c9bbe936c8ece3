"""Files that were merged are removed from a real table, in a catalog in SQLite; all commands go on without them."""

import os
import time
from pathlib import Path

from compactor.adapters.iceberg.opening import open_catalog
from compactor.cli.ui.failures import ExitCode
from tests.support import extras
from tests.support.iceberg_tables import NAME, sql_place
from tests.support.table_workspace import table_workspace
from tests.support.workspace import Workspace

pytestmark = extras.NATIVE.needed

TWO_DAYS = 2 * 86_400


def test_files_that_were_merged(tmp_path: Path) -> None:
    """They go by `maintain`; the rows are read, verified and traced, and the table is made again with them."""
    workspace = table_workspace(tmp_path, {each: f'{{"n": "{each}"}}\n'.encode() for each in "abcd"})
    written = [path for path in (tmp_path / "o").rglob("*.parquet") if "_table" not in path.parts]
    assert workspace.json("table", "merge")[0]["merged_files"] == 4
    [merged] = (tmp_path / "o" / "_table" / "merged").iterdir()
    assert _maintained(workspace)["removed_originals"] == 0, "the default is to keep them"
    long_ago = time.time() - TWO_DAYS
    os.utime(merged, (long_ago, long_ago))
    assert _maintained(workspace)["removed_originals"] == 0
    config = workspace.config.read_text()
    assert 'merged_originals = "keep"' not in config
    workspace.config.write_text(config.replace("[table]", '[table]\nmerged_originals = "remove"'))
    assert _maintained(workspace, "--dry-run")["removed_originals"] == 4
    assert all(path.exists() for path in written)
    assert "originals" in workspace.call("table", "maintain", "--keep-days", "0", "--keep-snapshots", "1").output
    assert [path for path in written if path.exists()] == []
    _check(workspace)
    table = open_catalog(sql_place(tmp_path))
    table.drop_table(NAME)
    document, code = workspace.json("table", "repair")
    assert (code, document["files"], document["rows"], document["missing"]) == (ExitCode.DONE, 1, 4, [])
    _check(workspace)


def _maintained(workspace: Workspace, *words: str) -> dict[str, int]:
    document: dict[str, int] = workspace.json("table", "maintain", "--keep-days", "0", "--keep-snapshots", "1", *words)[
        0
    ]
    return document


def _check(workspace: Workspace) -> None:
    rows = open_catalog(sql_place(workspace.root)).load_table(NAME).scan().to_arrow()
    assert sorted(rows.column("n").to_pylist()) == ["a", "b", "c", "d"]
    document, code = workspace.json("verify", "--deep")
    assert (code, document["discrepancies"], document["rows"]) == (ExitCode.DONE, [], 4)
    assert workspace.json("table", "check")[1] == ExitCode.DONE
    assert workspace.json("rebuild", "--dry-run")[0]["rebuilt"] == []
