"""The scale benchmark: it writes the records that a job leaves, and its table names costs that are not flat."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import scale_days
from bench.scale import LEDGER_MEASURES, main
from bench.scale_days_probe import COMMANDS
from bench.scale_ledger import FIRST_DAY, write_decided, write_finished
from bench.scale_probe import settings_at
from bench.scale_table import Measure, make_rows, plain, verdicts
from compactor.adapters.local.store import LocalStore
from compactor.core.layout import digest
from compactor.core.manifest_key import ManifestKey
from compactor.wiring.app import App
from tests.support.fakes import FaultyStore

MEASURES = (Measure("a", "the first", "ms", 1e-3), Measure("b", "the second", "MiB", 2.0**20))


def test_what_is_written_is_what_a_job_leaves(tmp_path: Path):
    """The synthetic records are those of finished manifests, each with its archive, and none is open."""
    app = App(settings_at(tmp_path))
    write_finished(app.layout, 40, "/raw")
    found = list(app.ledger.manifests())
    assert len(found) == 40
    assert len({key.date for key in found}) == 30
    for key in found:
        state = app.ledger.state(key)
        accepted = app.ledger.accepted(key.id)
        assert state.is_done
        assert state.outcome.outputs[0].final == app.layout.output_file(key, 0)
        archived = app.store.read(app.layout.archived_manifest(key))
        assert (accepted.manifest.to_json(), accepted.digest) == (archived, digest(archived))
        assert app.ledger.record_names(key) == {"attempt-1.json", "outcome.json", "done.json"}
    assert list(app.ledger.open_ids()) == []
    write_decided(app.layout, "left", "/raw", b"x")
    assert list(app.ledger.open_ids()) == ["left"]
    state = app.ledger.state(ManifestKey(FIRST_DAY.isoformat(), "left"))
    assert (state.outcome.outputs[0].staged.endswith("left/1/0.parquet"), state.is_done) == (True, False)


def test_twenty_against_forty(tmp_path: Path):
    """A whole run, small and without Spark, measures everything, leaves nothing behind and prints one table."""
    result_file = tmp_path / "scale.json"
    arguments = ["ledger", "--manifests", "40", "--against", "20", "--open", "2", "--rounds", "1"]
    arguments += ["--engine", "plain", "--work", str(tmp_path / "work"), "--json", str(result_file)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(result_file.read_text())["rows"]
    assert [row["measure"]["key"] for row in rows] == [each.key for each in LEDGER_MEASURES]
    assert all(row["much"] > 0 and row["little"] > 0 for row in rows)
    assert "cost " in result.stdout
    assert [path.name for path in (tmp_path / "work").iterdir() if path.is_dir()] == []


def test_status_asks_no_more_after_more(tmp_path: Path):
    """Status asks as little of the store after forty manifests as after twenty."""
    asked = []
    for manifests in (20, 40):
        settings = settings_at(tmp_path / str(manifests))
        write_finished(settings.layout(), manifests, "/raw")
        store = FaultyStore(LocalStore())
        App(settings, store=store).status_reader.read()
        asked.append(store.calls)
    assert asked[0] == asked[1]


def test_medians_of_pairs():
    """A ratio is the median over the pairs, with quartiles; one slow pair changes nothing."""
    pairs = [({"a": much, "b": 2**21}, {"a": little, "b": 2**20}) for much, little in ((0.006, 0.002), (9, 3), (90, 1))]
    first, second = make_rows(MEASURES, pairs)
    assert (first.ratio, *first.spread, first.much, first.little) == pytest.approx((3, 3, 46.5, 9_000, 1_000))
    assert (second.ratio, second.spread, second.much, second.little) == (2, (2, 2), 2, 1)
    cells = plain([second]).splitlines()[1]
    assert " ".join(cells.split()) == "the second 2.00x 2.00 to 2.00 2.0 1.0 MiB"


@pytest.mark.parametrize(("cost", "flat"), [(1.0, True), (1.2, True), (1.21, False)])
def test_what_is_not_flat_is_said(cost: float, flat: bool):
    """A ratio above the bound is named with both figures; else one line says that all is flat."""
    said = verdicts(make_rows(MEASURES[:1], [({"a": cost}, {"a": 1.0})]))
    assert said == (
        ["Flat: no ratio is above 1.2."]
        if flat
        else ["NOT FLAT: the first costs 1.21 times as much; expected 1.2 at most"]
    )


def test_a_state_of_closed_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the dates and sums that it should have; each command works on it; a command that is not flat is named."""
    monkeypatch.setattr(scale_days, "MANIFESTS", 3)
    monkeypatch.setattr(scale_days, "_OPEN_MANIFESTS", 2)
    scale_days._make(tmp_path, 4)
    app = App(settings_at(tmp_path))
    report = app.verifier().verify_all()
    assert (report.closed_dates, report.manifests) == (4, 4 * 3 + 2)
    for command in COMMANDS.values():
        command(App(settings_at(tmp_path)))
    flat, steep = ({"calls": calls, "seconds": 1.0, "bytes": 1.0} for calls in (100.0, 121.0))
    [line] = scale_days._table({"verify": {1: flat, 30: flat, 400: steep}})
    assert line.endswith("NOT FLAT: calls")
