"""What `compact`, `status`, `verify`, `trace` and `report` say of one folder agrees."""

import gzip
import json
import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.report_pages import read_page
from tests.unit.cli.test_cli_compact import pytestmark as needs_native
from tests.unit.cli.test_cli_destination import call

pytestmark = needs_native

ROWS = b"".join(b'{"id": %d}\n' % number for number in range(400))
CUT = gzip.compress(ROWS)[:60]


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


def put(raw: Path, name: str, data: bytes) -> Path:
    """A file of yesterday."""
    path = raw / name
    path.write_bytes(data)
    os.utime(path, (time.time() - 86_400,) * 2)
    return path


def document(*arguments: object) -> Any:
    return json.loads(call(*arguments, "--json").stdout)


def test_yesterdays_files(raw: Path) -> None:
    """A folder of yesterday's files is in order everywhere: no SLA, no price, and one next action."""
    put(raw, "a.ndjson", ROWS)
    made = document("compact", "raw", "my rows")
    found, state = document("report", "my rows"), document("status", "my rows")
    place = shlex.quote(str(raw.with_name("my rows")))
    assert (made["run"]["records"], found["totals"]["rows"], document("verify", "my rows")["rows"]) == (400,) * 3
    assert (found["verdict"]["severity"], found["verdict"]["points"]) == ("in_order", [])
    assert (found["sla_seconds"], found["cost"]) == (None, None)
    assert (state["state"]["word"], state["latency"]) == ("idle", None)
    assert state["state"]["next_move"] == f"compactor compact {raw} {place}, if there is new input"
    assert call("report", "my rows", "--out", "page.html").exit_code == 0
    shown = read_page(Path("page.html").read_text())
    assert "SLA" not in shown.text
    assert "$" not in shown.text
    assert "Everything is in order" in shown.text


def test_an_sla_in_the_settings(raw: Path) -> None:
    """An SLA in the settings of the folder counts, from the listing of a file on."""
    put(raw, "a.ndjson", ROWS)
    call("compact", "raw", "rows")
    assert document("report", "rows")["sla_seconds"] is None
    with Path("rows.compactor/compactor.toml").open("a") as file:
        file.write("\n[control]\nsla_seconds = 900\n")
    found = document("report", "rows")
    assert (found["sla_seconds"], found["verdict"]["severity"], found["totals"]["late_files"]) == (900, "in_order", 0)
    assert found["totals"]["latency"]["p99_seconds"] < 900


def test_a_quarantined_file(raw: Path) -> None:
    """A quarantined file ends each command with code 3, and a redrive takes it once it is whole."""
    put(raw, "a.ndjson", ROWS)
    cut = put(raw, "b.ndjson.gz", CUT)
    codes = {
        words[0]: call(*words).exit_code
        for words in (
            ("compact", "raw", "rows"),
            ("verify", "rows"),
            ("report", "rows"),
            ("trace", "--in", "rows", cut),
        )
    } | {"status": call("status", "rows").exit_code}
    assert set(codes.values()) == {3}, codes
    rows = raw.with_name("rows")
    state, [point] = document("status", "rows")["state"], document("report", "rows")["verdict"]["points"]
    assert (state["word"], state["reason"]) == ("needs_you", "1 input file is quarantined: 1 unreadable")
    assert (point["reason"], point["next_move"].replace("`", "")) == (state["reason"], state["next_move"])
    put(raw, cut.name, gzip.compress(ROWS))
    assert call("redrive", "files", "--in", rows).exit_code == 0
    assert call("compact", "raw", "rows").exit_code == 0
    assert document("status", "rows")["state"]["word"] == "idle"


def test_redriven_lines_are_no_further_file(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, lines and rows are those of the folder; a manifest of redriven lines has its own file alone."""
    put(raw, "a.ndjson", b'{"id": 1}\n{"id": "%s"}\n' % (b"x" * 2000))
    monkeypatch.setenv("COMPACTOR_INPUT__MAX_LINE_BYTES", "1024")
    call("compact", "raw", "rows")
    monkeypatch.delenv("COMPACTOR_INPUT__MAX_LINE_BYTES")
    assert call("redrive", "rejects", "--in", "rows").exit_code == 0
    assert call("compact", "raw", "rows").exit_code == 0
    found = document("verify", "--deep", "rows")
    assert [found[name] for name in ("input_files", "inputs_compared", "lines", "rows")] == [1, 1, 2, 2]
    [redriven] = document("trace", "--in", "rows", raw / "a.ndjson")["redriven_as"]
    own = document("verify", "--deep", "rows", "--manifest", redriven["manifest_id"])
    assert [own[name] for name in ("input_files", "inputs_compared", "lines", "rows")] == [1, 1, 1, 1]


def test_lines_that_are_no_rows(raw: Path) -> None:
    """Input of which under half became rows needs a person by every command that says so."""
    put(raw, "a.ndjson", b'{"id": 1}\nno\nno\n')
    made = call("compact", "raw", "rows")
    rows = raw.with_name("rows")
    assert made.exit_code == 3
    assert f"see why     compactor rejects {rows}" in made.stdout
    assert "redrive " not in made.stdout
    found, state = document("report", "rows")["verdict"]["points"][0], document("status", "rows")["state"]
    assert found["condition"] == state["condition"] == "few_rows"
    assert f"compactor rejects {rows}" in state["next_move"]
