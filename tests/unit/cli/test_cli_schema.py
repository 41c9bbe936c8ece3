"""Promises of `compactor schema show` and `retire`: every version, the columns that it added, and their first files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.local.store import LocalStore
from compactor.cli.commands.schema import SHOWN_COLUMNS, SHOWN_VERSIONS
from compactor.cli.entry import compactor as command
from compactor.core.errors import RecordUnreadable
from compactor.core.layout import Layout
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema import ColumnLimits, DeclaredColumn
from tests.support.memory_store import ManualClock
from tests.support.settings_files import write_settings


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_settings(tmp_path, schema={"file": f"{tmp_path}/gone.toml"})


def call(config: Path, *options: str) -> Result:
    return CliRunner().invoke(
        command, ["--config", str(config), "schema", *(options if options[:1] == ("retire",) else ("show", *options))]
    )


def registry(config: Path, *declared: DeclaredColumn) -> SchemaRegistry:
    root = config.parent
    layout = Layout(f"{root}/m", f"{root}/o", f"{root}/s")
    return SchemaRegistry(LocalStore(), layout, ManualClock(), names="safe", limits=ColumnLimits(3), declared=declared)


def test_no_version_yet(config: Path) -> None:
    """Before the first manifest there is no version, and the command writes nothing."""
    before = sorted(config.parent.rglob("*"))
    result = call(config)
    assert (result.exit_code, result.stdout[:21]) == (0, "No schema version yet")
    assert json.loads(call(config, "--json").stdout) == {"versions": []}
    assert sorted(config.parent.rglob("*")) == before


def test_versions(config: Path) -> None:
    """Versions come oldest first, each with name, type, key, manifest and first file of what it added."""
    registry(config, DeclaredColumn("t", "at", "timestamp", "seconds")).covering({"User\n": "/raw/1"}, "m1")
    registry(config).covering({"b": "/raw/2", "c": "/raw/3"}, "m2")
    result = call(config)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "version 1, 2026-01-01 00:00:00 UTC, manifest m1: 3 columns added",
        '  at             timestamp (numbers are seconds), key "t", from the schema file',
        '  user_          string, key "User\\n", from /raw/1',
        "  _rescued_data  map<string,string>, from the schema file",
        "version 2, 2026-01-01 00:00:00 UTC, manifest m2: 1 column added",
        "  b  string, from /raw/2",
    ]
    one, two = json.loads(call(config, "--json").stdout)["versions"]
    assert (one["version"], one["columns"], two["columns"], two["manifest_id"]) == (1, 3, 4, "m2")
    assert one["added"][0] == {"name": "at", "type": "timestamp", "key": "t", "epoch": "seconds", "source_uri": ""}
    assert [each["source_uri"] for each in two["added"]] == ["/raw/2"]


def test_retire(config: Path) -> None:
    """A retired column is shown with its version; the wrong name, or none, changes nothing."""
    (config.parent / "gone.toml").write_text('[[columns]]\nname = "n"\ntype = "long"\n')
    registry(config, DeclaredColumn("n", "n", "long")).covering({"Junk": "/raw/1", "b": "/raw/2"}, "m1")
    assert call(config, "retire").exit_code == 2
    refused = call(config, "retire", "junk", "other")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "COLUMN 'other': no such column in schema version 1 -> expected one of its names" in refused.stderr
    result = call(config, "retire", "junk")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        f"version 2, {result.stdout.split('version 2, ')[1][:19]} UTC, compactor schema retire: 1 column retired",
        "  junk  retired",
    ]
    latest = json.loads(call(config, "--json").stdout)["versions"][-1]
    assert (latest["retired"], latest["added"], latest["columns"]) == ([{"key": "Junk", "name": "junk"}], [], 3)


def test_long_lists(config: Path) -> None:
    """The screen shows the newest versions and the first columns of each; JSON shows all."""
    wide = [DeclaredColumn(f"k{number}", f"k{number}") for number in range(SHOWN_COLUMNS + 5)]
    for number in range(1, SHOWN_VERSIONS + 3):
        registry(config, *wide, *(DeclaredColumn(f"v{at}", f"v{at}") for at in range(number))).covering({}, "m")
    shown = call(config).stdout
    assert shown.startswith("2 older versions left out; --json shows all\n\nversion 3, ")
    assert shown.count("version ") == SHOWN_VERSIONS
    versions = json.loads(call(config, "--json").stdout)["versions"]
    assert [len(version["added"]) for version in versions] == [SHOWN_COLUMNS + 6] + [1] * (SHOWN_VERSIONS + 1)


def test_a_wide_version(config: Path) -> None:
    """The text form names the first columns of a wide version and counts the rest."""
    registry(config, *(DeclaredColumn(f"k{at}", f"k{at}") for at in range(SHOWN_COLUMNS + 1_005))).covering({}, "m")
    assert call(config).stdout.endswith("  and 1,005 more; --json shows all\n")


def test_a_damaged_version(config: Path) -> None:
    """An unreadable record is one line that names it, with the next action and no stack trace."""
    registry(config).covering({"a": "/raw/1"}, "m1")
    record = config.parent / "s" / "schemas" / "1.json"
    record.write_bytes(record.read_bytes()[:-20])
    for options in ((), ("--json",)):
        result = call(config, *options)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"compactor: {record}: ")
        assert result.stderr.splitlines()[1:] == [f"next: {RecordUnreadable.next_move}"]
