"""The shapes of the scale benchmark: their files are as described, and the table names broken promises."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bench import shape_lines
from bench.compactor_home import DAY, SAMPLE_ID, CompactorHome, S3Folder
from bench.measure import Measurement
from bench.protocol import Pass, first_keys
from bench.scale.__main__ import main
from bench.scale.shapes import over_s3, runs
from bench.scale.shapes.over_s3 import Round, compared
from bench.scale.shapes.runs import ShapeInput, compare, run_shape
from bench.scale.shapes.table import (
    REFERENCE,
    REFERENCE_S3,
    TASK_BYTES,
    Compared,
    ShapeRow,
    verdicts,
)
from bench.shapes import SHAPES, Shape, Written, write_shape
from compactor.ndjson.codecs import sniff
from compactor.wiring import streaming
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine

ROW = ShapeRow(
    shape="tiny rows",
    contender="compactor_native",
    decoded_bytes=1_000_000_000,
    seconds=4.0,
    cpu_seconds=5.0,
    peak_memory_bytes=800 * 2**20,
    peak_worker_bytes=300 * 2**20,
    is_promised=True,
    rows=10,
    expected_rows=10,
    output_files=(130_000_000, 60_000_000),
    target_file_bytes=128 * 2**20,
    compared=Compared(32_000_000, ()),
)

WRITTEN = Written(Path("input"), 1, 10, 1_000, 1_000)


def few_lines(name: str) -> Shape:
    """A shape whose blocks are short, so that a test makes little of it."""
    shape = next(shape for shape in SHAPES if shape.name == name)
    return replace(shape, lines=lambda _: iter([b'{"a":1}\n' * 100] * 100), total_bytes=2_000, file_bytes=500)


def depth(value: object) -> int:
    """How many levels an object or array has."""
    levels, inside = 0, [value]
    while inside := [each for each in inside if isinstance(each, dict | list)]:
        levels += 1
        inside = [part for each in inside for part in (each.values() if isinstance(each, dict) else each)]
    return levels


def test_lines_are_records_of_the_shape_they_say():
    """Each line is an object: of 40 bytes, of 2,000 keys, with a value of 5 MB, or 1,000 levels deep."""
    tiny, wide, huge, deep = (
        next(make(7)).splitlines(keepends=True)
        for make in (shape_lines.tiny, shape_lines.wide, shape_lines.huge, shape_lines.deep)
    )
    assert {len(line) for line in tiny} == {40}
    assert {len(orjson.loads(line)) for line in wide} == {shape_lines.WIDE_COLUMNS}
    assert len(orjson.loads(huge[0])["body"]) == shape_lines.HUGE_VALUE_BYTES
    assert depth(orjson.loads(deep[0])) == shape_lines.DEEP_LEVELS
    assert all(isinstance(orjson.loads(line), dict) for line in (tiny[0], tiny[-1], *deep))


@pytest.mark.parametrize("make", [shape_lines.deep, shape_lines.tiny], ids=["deep", "tiny"])
def test_the_same_seed_gives_the_same_lines(make):
    """The same seed gives the same lines, another seed gives others, and no block repeats."""
    assert next(make(7)) == next(make(7)) != next(make(8))
    assert len(set(islice(make(7), 2))) == 2


@pytest.mark.parametrize("name", ["small files", "gzip", "zstd"])
def test_files_hold_whole_lines_in_the_codec_of_the_shape(tmp_path, name):
    """Files of each codec end with the first whole line that fills them, and the counts are right."""
    written = write_shape(few_lines(name), tmp_path / "files", 7)
    files = sorted(written.folder.iterdir())
    data = [pa.input_stream(str(file), compression="detect").read() for file in files]
    assert {sniff(file.read_bytes()) for file in files} == {few_lines(name).codec or "none"}
    assert {each[-1:] for each in data} == {b"\n"}
    assert [len(each) for each in data] == [504, 504, 504, 488]
    assert (written.files, written.lines) == (4, 250)
    assert (written.decoded_bytes, written.stored_bytes) == (2_000, sum(file.stat().st_size for file in files))
    assert first_keys(files[0]) == ["a"]


def test_s3_is_compared_with_local_files_by_cpu_time():
    """The median of rounds, in each of which S3 took 5 s and files a part of it; a round with a fault is left out."""
    over_s3 = replace(ROW, shape=REFERENCE_S3)
    rounds = [Round(replace(ROW, shape=REFERENCE, cpu_seconds=cpu_seconds), over_s3) for cpu_seconds in (4.5, 3.5, 4.0)]
    failed = [replace(rounds[0], local=replace(ROW, failure="killed"))]
    failed.append(replace(rounds[0], over_s3=replace(over_s3, rows=9)))
    said = "native over S3 with TLS: {} as many bytes in a second of CPU time as from files"
    assert compared("native", rounds + failed) == [
        said.format("80%") + " (median of 3 rounds; half of them 75% to 85%)"
    ]
    assert compared("native", rounds[:1]) == [said.format("90%") + " (one round)"]
    assert compared("native", failed) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"peak_worker_bytes": TASK_BYTES + 2**20}, "a worker took 513 MiB, expected 512 at most"),
        ({"rows": 9}, "wrote 9 rows, expected 10"),
        ({"compared": Compared(1, ("rows differ",))}, "rows differ"),
        ({"failure": "exit code 1"}, "exit code 1"),
    ],
    ids=["memory", "rows", "values", "failure"],
)
def test_what_does_not_hold_is_named(change, said):
    """Too much memory, lost rows, other values and a failed engine are each named with shape and engine."""
    assert verdicts([replace(ROW, **change)]) == [f"NOT AS PROMISED: tiny rows, compactor_native: {said}"]


def test_places_in_s3_are_files_of_its_folder(tmp_path):
    """The objects of the job in S3 are files in the folder of the server."""
    s3 = S3Folder(tmp_path, "http://127.0.0.1:1")
    home = CompactorHome(tmp_path / "lake" / "output", (tmp_path / "lake" / "whole",), s3)
    settings = home.settings(engine="native")
    assert (settings.paths.output, settings.aws.endpoint_url) == ("s3://lake/output", s3.endpoint_url)
    assert settings.input.allowed_prefixes == ("s3://lake/whole",)


@pytest.mark.parametrize("is_changed", [False, True])
def test_every_value_of_the_sample_is_compared(tmp_path, is_changed):
    """Verification finds no difference between input and output of the sample, unless a value was changed."""
    sample = write_shape(few_lines("small files"), tmp_path / "sample", 7)
    home = CompactorHome(tmp_path / "output", (sample.folder,))
    app = App(home.settings(engine="spark"))
    runner = streaming.scheduler(app, PlainEngine(app.store, metadata_columns=app.settings.metadata_columns))
    for manifest_id in (SAMPLE_ID, "pass-1"):
        uri = app.layout.manifest(manifest_id)
        app.store.create(uri, home.manifest(manifest_id, sorted(sample.folder.iterdir())).to_json())
        assert runner.run([uri]).finished[0].outcome.date == DAY
    if is_changed:
        for path in home.output.rglob("*.parquet"):
            rows = pq.read_table(path)
            name = rows.field(-1).name  # of a key; metadata columns precede them
            pq.write_table(rows.set_column(rows.num_columns - 1, name, pa.array(["2"] * rows.num_rows)), path)
    found = compare(home.settings(engine="spark"), sample, "pass-1")
    assert found.value_bytes == 2_000
    assert bool(found.differences) is is_changed


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The runs that the command `s3` asks for, which take 4 s on files and 5 s over S3; the last run fails."""
    made = []

    def run(given, contender, work, passes):
        is_last = len(made) == 4
        made.append((given.name, contender.name, work, passes))
        row = replace(ROW, shape=given.name, contender=contender.name, failure="killed" if is_last else "")
        return row if given.s3 else replace(row, cpu_seconds=4.0)

    def given(name, s3=None):
        return lambda *_: nullcontext(ShapeInput(name, WRITTEN, WRITTEN, s3))

    monkeypatch.setattr(over_s3, "run_shape", run)
    monkeypatch.setattr(over_s3, "reference_input", given(REFERENCE))
    monkeypatch.setattr(over_s3, "reference_over_s3", given(REFERENCE_S3, S3Folder(tmp_path, "http://127.0.0.1:1")))
    return made


def test_files_and_s3_take_turns(tmp_path, asked):
    """Each is first in every other round; their comparison is printed and stored."""
    file, work = tmp_path / "found.json", tmp_path / "work"
    arguments = ["s3", "--contenders", "compactor_native", "--rounds", "2", "--passes", "4"]
    done = CliRunner().invoke(main, [*arguments, "--work", str(work), "--json", str(file)])
    assert (done.exit_code, [each[0] for each in asked]) == (0, [REFERENCE, REFERENCE_S3, REFERENCE_S3, REFERENCE])
    assert {each[1:] for each in asked} == {("compactor_native", work, 4)}
    line = "compactor_native over S3 with TLS: 80% as many bytes in a second of CPU time as from files"
    found = orjson.loads(file.read_bytes())
    assert found["compared"] == [f"{line} (median of 2 rounds; half of them 80% to 80%)"]
    assert found["compared"][0] in done.stdout
    assert (len(found["rows"]), found["left_out"]) == (4, [])
    assert "timed 4 times" in found["method"]


def test_a_run_that_fails_is_told(tmp_path, asked):
    """The command fails, with what could be compared."""
    arguments = ["s3", "--contenders", "compactor_native", "--rounds", "3", "--work", str(tmp_path)]
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, len(asked)) == (1, 6)
    assert "NOT AS PROMISED: reference, compactor_native: killed" in done.stdout
    assert "80% as many bytes in a second of CPU time as from files (median of 2 rounds" in done.stdout


def test_what_the_last_pass_left_is_compared(tmp_path, monkeypatch):
    """Each pass deletes the output of the pass before it."""
    made = Measurement("compactor_native", (Pass(1, 1_000, (1,), 10, cpu_seconds=1),) * 3, 2**30)
    monkeypatch.setattr(runs, "run_contender", lambda *_, **__: made)
    compared_ids = []
    monkeypatch.setattr(runs, "compare", lambda _, __, timed_id: compared_ids.append(timed_id))
    run_shape(ShapeInput("tiny rows", WRITTEN, WRITTEN), runs.ENGINES[0], tmp_path, 3)
    assert compared_ids == ["pass-3"]
