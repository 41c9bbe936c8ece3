"""What became of every line of a lake, from the lines themselves and not by what the ledger says of them."""

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from compactor.settings.settings import load_settings
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.faults.conftest import Lake
from tests.faults.tally import Case

Line = tuple[str, int, str]
"""A reject by its file, its number and its text; a row by no file, no number and its values."""


def check(lake: Lake, case: Case) -> None:
    """Every line is one row or one reject, `verify --deep` agrees, and nothing is left lying about.

    What is lost or doubled is counted before anything is asserted.
    """
    expected, found = lines_put_in(lake), lines_found(lake)
    case.lines += expected.total()
    case.lost += (expected - found).total()
    case.doubled += (found - expected).total()
    assert found == expected
    assert discrepancies(lake) == []
    lake.assert_exact()


def lines_put_in(lake: Lake) -> Counter[Line]:
    """Every line of every input file."""
    lines: Counter[Line] = Counter()
    for path in (lake.folder / "input").iterdir():
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            lines[("", 0, line) if line.startswith("{") else (str(path), number, line)] += 1
    return lines


def lines_found(lake: Lake) -> Counter[Line]:
    """Every row of the output and every reject."""
    lines = Counter(("", 0, line) for line in lake.output_lines())
    for path in (lake.state / "rejects").rglob("*.parquet"):
        for row in pq.read_table(path).to_pylist():
            lines[row["source_uri"], row["line_number"], row["raw"].decode()] += 1
    return lines


def discrepancies(lake: Lake) -> list[object]:
    """What `verify --deep` would find, in this process."""
    app = App(load_settings(lake.config, {}))
    report = operating.verifier(app, deep=True).verify_all()
    return [*report.discrepancies] + ["unfinished"] * report.unfinished


def manifests_in_effect(lake: Lake) -> Counter[str]:
    """How many manifests name each input file, among those that can still take effect or did."""
    kinds = {path.stem: kind(path) for path in (lake.state / "accepted").rglob("*.json")}
    waiting = [path for path in (lake.folder / "manifests").glob("*.json") if kinds.get(path.stem) != "revoked"]
    named: Counter[str] = Counter()
    for path in waiting:
        named.update(file["uri"] for file in json.loads(path.read_text())["files"])
    return named


def kind(path: Path) -> str:
    return str(json.loads(path.read_text())["kind"])
