"""The scoreboard accounts for every line, and shows what is not timed with the reason."""

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("psutil")

from bench.contenders import SCOREBOARD, choose
from bench.measure import Measurement
from bench.protocol import Pass, first_keys
from bench.scoreboard.__main__ import run_set
from bench.scoreboard.account import Account, read_account
from bench.scoreboard.bluesky import bluesky
from bench.scoreboard.chart import COLOURS, LABELS, Bar, bars, chart
from bench.scoreboard.figures import Figure, timed
from bench.scoreboard.report import HEADINGS, Scoreboard, SetFacts, cells
from bench.scoreboard.sets import BAD_EVERY, SETS, with_late_key
from bench.scoreboard.truth import Truth, read_truth
from tests.support import extras

DOCS = Path(__file__).parents[3] / "docs"

WHOLE = Account(
    rows=10,
    good=10,
    expected=10,
    doubled=0,
    stray=0,
    text=40,
    value=0,
    different=0,
    example="",
    late=2,
    late_expected=2,
)
FACTS = SetFacts("dirty", 3, 12, 2, 2, 8, 2_000_000, 2_000_000)


def named(name: str):
    return next(each for each in SETS if each.name == name)


def run(seconds: float, *, rows: int = 10, cpu: float = 1.0, failure: str = "", memory: int = 2**20):
    return Measurement("x", tuple(Pass(each, 1, (1,), rows, cpu) for each in (9.0, seconds)), memory, failure)


def test_documents_have_the_published_shape():
    """Commits with their records, of which a like has an object as its subject and a follow a string."""
    lines = [json.loads(line) for block in islice(bluesky(1), 2) for line in block.splitlines()]
    times = [line["time_us"] for line in lines]
    assert times == sorted(set(times))
    assert {line["kind"] for line in lines} == {"commit", "identity", "account"}
    commits = [line["commit"] for line in lines if line["kind"] == "commit"]
    created = [commit for commit in commits if commit["operation"] == "create"]
    assert all({"rev", "collection", "rkey", "record", "cid"} <= commit.keys() for commit in created)
    subjects = {commit["collection"]: type(commit["record"].get("subject")) for commit in created}
    assert subjects["app.bsky.feed.like"] is dict
    assert subjects["app.bsky.graph.follow"] is str
    assert any("record" not in commit for commit in commits)
    assert next(bluesky(1)) == next(bluesky(1)) != next(bluesky(2))


@pytest.mark.parametrize("chosen", SETS, ids=lambda each: each.name)
def test_a_set_has_keys_late_keys_and_bad_lines(chosen, tmp_path):
    """Its lines have a key each, its last lines the late key, which none of the first has; only a dirty one is bad."""
    given = chosen.write(tmp_path / "set", 500_000, seed=1)
    truth = read_truth(chosen, given)
    assert truth.lines == given.lines
    assert truth.bad == (given.lines // BAD_EVERY if chosen.is_dirty else 0)
    assert 0 < len(truth.late) < given.lines / 4
    assert truth.sample.keys() < truth.good
    assert truth.late.keys().isdisjoint(truth.sample)
    assert {chosen.key, chosen.late[0]} - {"late_key"} <= set(first_keys(min(given.folder.iterdir())))


def test_the_late_key_begins_at_a_byte():
    """Lines that begin before it stay as they are, and so do lines without the object."""
    blocks = iter([b'{"a":{"b":1}}\n' * 2, b'{"a":{"b":1}}\n{"c":1}\n'])
    first, second = with_late_key(blocks, 14, b'"a":{')
    assert first == b'{"a":{"b":1}}\n{"a":{"late_key":"late-14","b":1}}\n'
    assert second == b'{"a":{"late_key":"late-28","b":1}}\n{"c":1}\n'


def test_every_line_is_accounted_for(tmp_path):
    """Lost, doubled, changed and stray rows are counted, and so are late keys."""
    keys = [str(number) for number in range(6)]
    sample = {key: {"id": key, "v": '"x"'} for key in keys[:4]}
    truth = Truth(7, frozenset(keys), sample, {"4": "late-4", "5": "late-5"})
    table = {"id": ["0", "1", "1", "2", "4", "5", None], "v": ["x", "x", "x", "y", "", "", ""]}
    late = [*[None] * 4, "late-4", None, None]
    pq.write_table(pa.table({**table, "late_key": late}), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"other": [1]}), tmp_path / "without-key.parquet")
    account = read_account(named("events"), truth, tmp_path)
    assert (account.rows, account.good, account.expected) == (8, 5, 6)
    assert (account.doubled, account.stray, account.example) == (1, 2, "v")
    assert (account.late, account.late_expected) == (1, 2)
    assert account.disagreement() == (
        "1 of 6 lines are no row; 1 lines are more than one row; 2 rows are no good line; "
        "1 of 8 values differ, the first in `v`"
    )
    assert WHOLE.disagreement() == ""


def test_figures_are_medians_of_second_passes():
    """Speed and CPU time are those of the input before compression."""
    proved = Figure("events", "x", account=WHOLE)
    figure = timed(proved, [run(2.0, cpu=4.0), run(1.0, cpu=2.0), run(4.0, cpu=3.0)], 100_000_000)
    assert (figure.megabytes_per_second, figure.cpu_seconds_per_gb, figure.peak_memory_mib) == (50, 30, 1)
    assert figure.seconds == (2.0, 1.0, 4.0)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (run(1.0, failure="exit code 1"), "exit code 1"),
        (run(1.0, rows=9), "a timed pass wrote 9 rows, the one before 10"),
    ],
)
def test_a_run_that_fails_leaves_no_time(bad, reason):
    """One run that fails, or writes other rows, takes the place of all figures."""
    figure = timed(Figure("events", "x", account=WHOLE), [run(1.0), bad], 1)
    assert (figure.megabytes_per_second, figure.reason) == (None, reason)


def test_the_table_hides_nothing():
    """The fastest is on top; what failed is there with its reason, and so is what lost lines."""
    lost = "1 of 10 lines are no row; 2 of 2 late keys are lost"
    lossy = replace(WHOLE, good=9, late=0, value=10, text=30)
    figures = [
        Figure("dirty", "broken", reason="exit code 1: a | b"),
        Figure("dirty", "slow", 10.0, 30.0, 100.0, (1.0,), lossy),
        Figure("dirty", "fast", 20.0, 15.0, 1_000.0, (0.5,), WHOLE, 2),
    ]
    board = Scoreboard("Method.", ["x 1"], {"fast": "said"}, [FACTS], figures)
    table = [line.strip("| ").split(" | ") for line in board.markdown().splitlines() if line.startswith("| dirty")]
    assert [line[1] for line in table] == ["fast", "slow", "broken"]
    assert table[0][2:9] == ["20", "15.0", "1,000", "10 of 10", "equal, same text", "2 of 2", "2 of 2 recorded"]
    assert table[1][5:] == ["9 of 10", "equal, 75 % same text", "0 of 2", "no record", lost]
    assert board.markdown().count("a \\| b") == 1
    assert all(len(cells(each, 2)) == len(HEADINGS) for each in figures)
    stored = json.loads(board.json())
    assert stored["figures"][2]["account"]["rows"] == 10
    assert stored["sets"][0]["bad_lines"] == 2


@pytest.mark.full
def test_a_tiny_scoreboard(tmp_path):
    """DuckDB loses the late key, which is no given column; the compactor keeps all, and records bad lines."""
    extras.NATIVE.need()
    contenders = choose("compactor,duckdb_columns", SCOREBOARD)
    fact, figures = run_set(named("dirty"), contenders, tmp_path, 200_000, 1, runs=1, limit=120)
    own, duckdb = figures
    assert (own.reason, duckdb.reason) == ("", "")
    assert own.account.disagreement() == ""
    assert own.recorded == fact.bad_lines == fact.lines // BAD_EVERY
    assert own.account.late == own.account.late_expected == fact.late_lines
    assert (duckdb.account.late, duckdb.recorded) == (0, None)
    assert own.megabytes_per_second > 0
    assert duckdb.cpu_seconds_per_gb >= 0


def test_the_chart_shows_the_page():
    """The chart of the README has the figures of the whole table, for light and for dark pages."""
    table = (DOCS.parent / "bench" / "side-by-side.md").read_text().partition("<!-- scoreboard:")[2]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("| events |")]
    shown = [Bar(float(row[4]), row[2], "late keys" in row[10]) for row in rows if row[2] in LABELS]
    assert len(shown) == len(LABELS)
    for theme in COLOURS:
        assert (DOCS / f"cpu-{theme}.svg").read_text() == chart(shown, theme)


def test_bars_are_of_what_was_timed():
    """A contender without a time has none, and what loses late keys says so."""
    timed_well, timed_badly, untimed = (
        Figure("events", "polars", cpu_seconds_per_gb=seconds, account=account)
        for seconds, account in ((2.0, WHOLE), (1.0, replace(WHOLE, late=1)), (None, WHOLE))
    )
    assert bars([timed_well, timed_badly, untimed, replace(timed_well, data_set="wide")]) == [
        Bar(2.0, "polars", loses=False),
        Bar(1.0, "polars", loses=True),
    ]
