"""Promises of `compact --records`: how each shape of files ends, and what later calls and commands do with it."""

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

import compactor
from compactor.cli.entry import compactor as command
from compactor.core.text.formatting import count
from tests.support import extras
from tests.support.compacting import call, write
from tests.support.record_shapes import Shape, shapes

pytestmark = extras.NATIVE.needed


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


def options(shape: Shape, path: str) -> list[str]:
    given = ["--records", path] if path else ["--format", "json"]
    return [*given, *(["--keep", ",".join(shape.keep)] if shape.keep else [])]


@pytest.mark.parametrize("shape", shapes(), ids=lambda shape: shape.name)
def test_every_shape_ends_as_it_should(raw: Path, tmp_path: Path, shape: Shape) -> None:
    """By its path, and if the few are recognised."""
    write(raw / shape.name, shape.data)
    for path in [shape.path, *(["auto"] if shape.is_recognised else [])]:
        out = tmp_path / ("auto" if path == "auto" else "rows")
        result = call(raw, out, "--deep", *options(shape, path))
        assert result.exit_code == shape.exit_code, result.output
        rows = ds.dataset(out, format="parquet").count_rows() if shape.records else 0
        assert rows == len(shape.records)
        if shape.status == "compacted":
            lines, rejects = rows + len(shape.refused), len(shape.refused)
            parts = count(lines, "line"), count(rows, "row"), count(rejects, "reject")
            assert "{} = {} + {} + 0 blank".format(*parts) in result.output


@pytest.mark.parametrize("name", ["cloudtrail.json.gz", "subscription.gz", "otlp.jsonl", "otlp.json"])
def test_without_the_option_it_is_named(raw: Path, tmp_path: Path, name: str) -> None:
    """With the words to use, in another DST; these end with rows."""
    (shape,) = (each for each in shapes() if each.name == name)
    write(raw / shape.name, shape.data)
    result = call(raw, tmp_path / "rows")
    assert result.exit_code == 3
    quoted = f"'{shape.path}'"
    assert f"--records {quoted}" in result.output
    assert call(raw, tmp_path / "others", "--records", shape.path).exit_code == 0


def test_a_later_call_takes_the_same_records(raw: Path, tmp_path: Path) -> None:
    """The path is remembered, a grown file is read anew, and a rebuild reads as the first call did."""
    write(raw / "a.json", b'{"owner":"1","Records":[{"n":1}]}\n')
    out = tmp_path / "rows"
    assert call(raw, out, "--records", "Records[]", "--keep", "owner").exit_code == 0
    write(raw / "b.json", b'{"owner":"2","Records":[{"n":2},{"n":3,"owner":null}]}')
    assert call(raw, out).exit_code == 0
    for file in out.rglob("*.parquet"):
        file.unlink()
    rebuilt = CliRunner().invoke(command, ["rebuild", str(out)])
    rows = ds.dataset(out, format="parquet").to_table().to_pylist()
    assert sorted((row["n"], row["owner"]) for row in rows) == [("1", "1"), ("2", "2"), ("3", None)], rebuilt.output
    verified = CliRunner().invoke(command, ["verify", "--deep", str(out), "--json"])
    assert json.loads(verified.stdout)["discrepancies"] == []


def test_a_redriven_element_has_what_is_carried(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was too long, once it may be longer. Its line feeds are not those of lines."""
    write(raw / "a.json", b'{"owner":"1","Records":[{"n":1},\n{"n":\n"' + b"2" * 100 + b'"}]}')
    out = tmp_path / "rows"
    monkeypatch.setenv("COMPACTOR_INPUT__MAX_LINE_BYTES", "40")
    assert call(raw, out, "--records", "Records[]", "--keep", "owner").exit_code == 0
    monkeypatch.delenv("COMPACTOR_INPUT__MAX_LINE_BYTES")
    assert compactor.rejects(out)["kept"].to_pylist() == ['{"owner":"1"}']
    redriven = CliRunner().invoke(command, ["redrive", "rejects", "--in", str(out)])
    assert redriven.exit_code == 0, redriven.output
    assert call(raw, out, "--deep").exit_code == 0
    rows = ds.dataset(out, format="parquet").to_table().to_pylist()
    assert sorted((row["n"], row["owner"]) for row in rows) == [("1", "1"), ("2" * 100, "1")]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["--records", "Records"], 'input.records: "Records" -> expected keys separated by dots'),
        (["--keep", "owner"], "input.records"),
        (["--records", "a[]", "--format", "ndjson"], 'input.format: "ndjson" -> expected "json"'),
        (["--records", "a[]", "--grok", "%{WORD:a}"], 'input.format: "grok" -> expected "json"'),
    ],
)
def test_options_that_do_not_fit(raw: Path, tmp_path: Path, given: list[str], fault: str) -> None:
    write(raw / "a.json", b'{"a":[{}]}')
    result = call(raw, tmp_path / "rows", *given)
    assert result.exit_code == 2
    assert fault in result.output
