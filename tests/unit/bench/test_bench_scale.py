"""The scale benchmark: it writes the records that a job leaves, and its table names costs that are not flat."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.scale.__main__ import LEDGER_MEASURES, main
from bench.scale.days import closed_days, make_state
from bench.scale.days_probe import ALL, CLOSING, COMMANDS, ON_S3, TO_S3, dates_of, measured, settings_of
from bench.scale.ledger import FIRST_DAY, write_decided, write_finished
from bench.scale.probe import settings_at
from bench.scale.table import Measure, make_rows, plain, verdicts
from compactor.adapters.local.store import LocalStore
from compactor.core.layout import ManifestKey, digest
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.support.fakes import FaultyStore
from tests.support.sampling import few

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
    write_decided(app.layout, "left", "/raw")
    assert list(app.ledger.open_ids()) == ["left"]
    state = app.ledger.state(ManifestKey(FIRST_DAY.isoformat(), "left"))
    assert (state.outcome.outputs[0].staged.endswith("left/1/0.parquet"), state.is_done) == (True, False)


@pytest.mark.full
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
        operating.status_reader(App(settings, store=store)).read()
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


DAYS = (1, 5, 20)
DAY_MANIFESTS = 20


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """States of so many closed dates."""
    roots = {number: tmp_path_factory.mktemp("days") / str(number) for number in DAYS}
    for number, root in roots.items():
        make_state(root, number, manifests=DAY_MANIFESTS, open_manifests=2)
    return roots


def calls(states: dict[int, Path], command: Callable[[App], object], name: str = "") -> list[int]:
    """The calls of a command with few and with many closed dates; a list call gives 10 objects."""
    found = []
    for number, root in states.items():
        dates, settings = dates_of(name, number), settings_of(name, root)
        store = measured(root, dates, command, manifests=DAY_MANIFESTS, page=10, settings=settings)
        found.append(store.calls.total())
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_call_more_with_more_closed_dates(command: str, states: dict[int, Path]) -> None:
    """Each command makes as many calls with 20 closed dates as with one, within 20 %."""
    found = calls(states, COMMANDS[command])
    assert max(found) <= 1.2 * min(found), found


@pytest.mark.parametrize("command", [*few(ON_S3, 1), *few(TO_S3, 1), *CLOSING])
def test_an_index_is_some_calls_more(command: str, states: dict[int, Path]) -> None:
    """Of 20 dates it has one merged run and up to fifteen others: each of them is two calls, and one to list it."""
    found = calls(states, ALL[command], command)
    assert max(found) <= min(found) + 3 * 2 * 16, found
    assert found[2] <= found[1] + 3 * 2 * 8, found


def test_what_lists_or_reads_a_date_is_seen(states: dict[int, Path]) -> None:
    """So the test above can tell: the made-up records of closed dates are listed and read as others are."""
    few, _, many = calls(states, lambda app: list(app.ledger.manifests()))
    assert many - few == 19 * DAY_MANIFESTS * 3 // 10
    few, _, many = calls(states, lambda app: [app.ledger.outcome(key) for key in app.ledger.manifests()])
    assert many - few >= 19 * DAY_MANIFESTS


def test_a_state_of_closed_dates(tmp_path: Path) -> None:
    """It has the dates and sums that it should have, and records like those that a job leaves."""
    seen = []
    make_state(tmp_path, 5, manifests=DAY_MANIFESTS, open_manifests=2)

    def look(app: App) -> None:
        seen.append(operating.verifier(app).verify_all())
        for key in app.ledger.manifests(closed_days(5)[2]):
            state, accepted = app.ledger.state(key), app.ledger.accepted(key.id)
            assert (state.is_done, state.outcome.key, accepted.key) == (True, key, key)
            assert app.store.stat(app.layout.archived_manifest(key)) is not None
        assert len(list(app.store.list(app.layout.failed_folder))) == 5 * 2

    measured(tmp_path, closed_days(5), look, manifests=DAY_MANIFESTS, page=1000)
    [report] = seen
    assert (report.closed_dates, report.manifests + report.dead_letters) == (5, 5 * DAY_MANIFESTS + 2)
