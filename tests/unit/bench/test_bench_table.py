import os

import pytest

pytest.importorskip("psutil")

from bench.contenders import CONTENDERS, choose
from bench.inputs import check_room, ensure_input, parse_size
from bench.last import keep_result
from bench.measure import Measurement, _failure
from bench.protocol import Pass, dump, load
from bench.table import make_rows, notes, speed
from compactor.cost.worker_needs import BenchResult


def measured(name: str, *seconds: float, rows: int = 10, failure: str = "", files: tuple[int, ...] = (3_000_000,)):
    passes = tuple(Pass(each, 100_000_000, files, rows, cpu_seconds=1.5 * each) for each in seconds)
    return Measurement(name, passes, 512 * 2**20, failure)


def rows_of(*measurements):
    return make_rows(measurements, baseline="classic", expected_rows=10)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((4.0,), 25e6), ((9.0, 2.0), 50e6), ((9.0, 2.0, 4.0, 5.0), 25e6)],
)
def test_speed_is_the_median_without_the_first_pass(seconds, expected):
    """The first pass warms up and counts only where there is no other."""
    assert speed(measured("x", *seconds)) == expected


def test_ratios_are_to_the_baseline_and_the_fastest_is_on_top():
    """Rows come by speed, each with its speed over that of the baseline."""
    rows = rows_of(measured("classic", 2.0, 2.0), measured("slow", 4.0, 4.0), measured("fast", 1.0, 0.5))
    assert [(row.contender, row.ratio) for row in rows] == [("fast", 4.0), ("classic", 1.0), ("slow", 0.5)]


def test_a_failed_contender_is_last_and_says_why():
    """A failure shows its reason and no figures."""
    rows = rows_of(measured("broken", 0.1, failure="exit code 1"), measured("classic", 2.0))
    assert [row.contender for row in rows] == ["classic", "broken"]
    assert rows[1].megabytes_per_second is None
    assert notes(rows) == ["broken: exit code 1"]


def test_lost_or_doubled_rows_are_noted():
    """A contender whose rows are not as many as the lines gets a note."""
    assert notes(rows_of(measured("lossy", 1.0, rows=9))) == ["lossy: wrote 9 rows, expected 10"]
    assert notes(rows_of(measured("exact", 1.0))) == []


def test_a_pass_survives_the_protocol_and_other_lines_are_no_pass():
    """A printed pass is parsed back; other output is not a pass."""
    one = Pass(1.5, 7, (3, 4), 2)
    assert load(dump(one)) == one
    assert [load(line) for line in ("WARN something", "{}", "[1]", "", '{"seconds": 1}')] == [None] * 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1gb", 1_048_576_000), ("200MB", 200 * 2**20), ("1.5 mb", 1_572_864), ("64kb", 65_536)],
)
def test_sizes_are_read(text, expected):
    """Sizes come with a unit, in any case."""
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "1", "gb", "-1gb", "0mb", "1tb"])
def test_a_size_without_sense_is_refused(text):
    """The error of an invalid size says what was expected."""
    with pytest.raises(ValueError, match="expected a number and kb, mb or gb"):
        parse_size(text)


def test_contenders_are_chosen_by_name_in_the_order_of_the_table():
    """All by default; unknown names are an error that lists the known ones."""
    assert choose(None) == CONTENDERS
    assert [each.name for each in choose("polars, classic")] == ["classic", "polars"]
    with pytest.raises(ValueError, match=r"no contender called spork: expected some of classic, .*polars"):
        choose("spork,classic")


def test_input_is_made_once(tmp_path):
    """The second run finds the files of the first one, as many lines as counted."""
    first = ensure_input(tmp_path, 100_000, seed=1)
    made = {file: file.stat().st_mtime_ns for file in first.folder.iterdir()}
    assert ensure_input(tmp_path, 100_000, seed=1) == first
    assert {file: file.stat().st_mtime_ns for file in first.folder.iterdir()} == made
    assert sum(file.read_bytes().count(b"\n") for file in made) == first.rows
    assert sum(file.stat().st_size for file in made) == first.bytes


def test_too_little_room_is_told_before_work_begins(tmp_path):
    """A disk that is too full is an error with both figures and what to do."""
    with pytest.raises(OSError, match=r"GB free, expected at least 1000000000\.0 GB; take another --work"):
        check_room(tmp_path, 10**18)


def test_a_failure_names_the_error(tmp_path):
    """The line with the error is taken, not the last one of its explanation."""
    log = tmp_path / "log"
    log.write_text("Traceback:\n  raise\n_duckdb.BinderException: no such column\n\nLINE 1: SELECT x\n        ^\n")
    assert "2 passes: _duckdb.BinderException: no such column (see" in _failure(1, 0, 2, log)
    log.write_text("one\ntwo\n")
    assert "2 passes: two (see" in _failure(1, 0, 2, log)


def test_the_last_result_is_kept_for_the_cost(tmp_path):
    """Engines without a fault are kept with their speed; without any, the earlier result stays."""
    rows = rows_of(
        measured("classic", 2.0, 2.0),
        measured("compactor_native", 1.0, 0.5),
        measured("compactor_spark", 2.0, 1.0, rows=9),
        measured("compactor_declared", 2.0, 1.0),
    )
    keep_result(rows, tmp_path)
    kept = BenchResult.model_validate_json((tmp_path / "last.json").read_bytes())
    assert kept.megabytes_per_second == {"native": 200.0}
    assert kept.cores == os.cpu_count()
    assert keep_result(rows_of(measured("duckdb_union", 1.0)), tmp_path) is None
    assert BenchResult.model_validate_json((tmp_path / "last.json").read_bytes()) == kept
