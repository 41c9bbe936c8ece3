"""Promises of `compactor schema suggest`: a schema file on stdout that the product reads, and nothing written."""

import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.ops.suggest import spread
from compactor.schema.schema_of_settings import parse_schema_file
from tests.unit.cli.test_cli_folder import denying


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


def suggest(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["schema", "suggest", *map(str, arguments)])


def types(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    limits: dict[str, Any] = {"max_columns": 100, "refused": {}}
    declared = parse_schema_file(result.stdout_bytes, "x", names="exact", **limits)
    return {column.key: column.type for column in declared}


def test_a_folder_gets_a_schema_file(raw: Path) -> None:
    """Plain and compressed files count; what can be read of a broken one does, and the file is named."""
    (raw / "a.ndjson").write_bytes(b'{"id": 1, "at": "2026-01-05T10:00:00Z", "x": 1}\nno json\n')
    (raw / "b.gz").write_bytes(gzip.compress(b'{"id": 2, "x": 1.5, "\xc3\xa9": "007"}\n'))
    (raw / "c.gz").write_bytes(gzip.compress(b'{"id": 3, "x": 9007199254740993}\n' * 9000)[:-30])
    (raw / "_SUCCESS").write_bytes(b"")
    before = sorted(raw.parent.rglob("*"))
    result = suggest(raw, "--all", "--names", "exact")
    assert types(result) == {"id": "long", "at": "timestamp", "x": "decimal(38,1)", "é": "string"}
    assert f"from all files of {raw}." in result.stdout
    assert "# 1 line left out: not one JSON object each." in result.stdout
    assert f"# Not read to the end: {raw}/c.gz: " in result.stdout
    assert sorted(raw.parent.rglob("*")) == before


def test_what_compact_would_take(raw: Path) -> None:
    """Elements of JSON files count if they are asked for; hidden files do not."""
    (raw / "a.json").write_bytes(b'[{"id": 1},\n{"id": 2}]')
    (raw / "b.ndjson").write_bytes(b'{"id": 3}\n')
    (raw / ".c.ndjson").write_bytes(b'{"id": "no"}\n')
    suggested = suggest(raw, "--format", "json")
    assert (types(suggested), "Types of 3 records, from all files" in suggested.stdout) == ({"id": "long"}, True)
    plain = suggest(raw)
    assert (types(plain), f"Not read to the end: {raw}/a.json: " in plain.stdout) == ({"id": "long"}, True)


def test_files_and_patterns(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SRC is a folder, a file, a pattern, or several of them; no file counts twice."""
    for name, line in (
        ("a.ndjson", '{"a": 1}'),
        ("b.log", '{"b": 1}'),
        ("_c.ndjson", '{"c": 1}'),
        ("x/d.log", '{"d": 1}'),
    ):
        (raw / name).parent.mkdir(exist_ok=True)
        (raw / name).write_text(line + "\n")
    monkeypatch.chdir(raw)
    for words, keys in [
        (["a.ndjson"], "a"),
        (["_c.ndjson", "a.ndjson"], "ac"),
        (["*.log"], "b"),
        (["**/*.log", "b.log"], "bd"),
        (["x", "a.ndjson", "x/d.log"], "ad"),
        (["."], "abd"),
    ]:
        result = suggest(*words)
        assert (set(types(result)), f"Types of {len(keys)} record" in result.stdout) == (set(keys), True), result.stdout
    assert (
        f"from all files of {raw}/a.ndjson {raw}/b.log {raw}/_c.ndjson and 1 more."
        in suggest("a.ndjson", "b.log", "_c.ndjson", "x/d.log").stdout
    )


def test_a_forbidden_folder(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and the rest counts."""
    monkeypatch.setattr("compactor.adapters.local.store.os.scandir", denying("secret"))
    (raw / "a.ndjson").write_text('{"a": 1}\n')
    (raw / "secret").mkdir()
    result = suggest(raw)
    assert types(result) == {"a": "long"}
    assert f"# Not read to the end: {raw}/secret/: cannot read {raw}/secret/: permission denied" in result.stdout


def test_the_settings_of_a_folder(raw: Path) -> None:
    """--in says which settings count."""
    (raw / "country=DE").mkdir()
    (raw / "country=DE" / "a.ndjson").write_bytes(b'{"Id": 1}\n')
    os.utime(raw / "country=DE" / "a.ndjson", (time.time() - 3600,) * 2)  # no longer written to
    for out, words in [("x", ["--hive-keys", "--names", "exact"]), ("y", [])]:
        CliRunner().invoke(command, ["compact", str(raw), str(raw.parent / out), *words])
    found = [suggest(raw, "--in", raw.parent / out) for out in "xy"]
    assert [types(each) for each in found] == [{"country": "string", "Id": "long"}, {"Id": "long"}]
    assert types(suggest("--in", raw.parent / "x")) == types(found[0])  # without SRC, the input of DST counts
    refused = suggest(raw.parent / "x")
    assert (refused.exit_code, "expected SRC; give the output as --in" in refused.stderr) == (2, True)


def test_a_sample_is_spread_over_the_files(raw: Path) -> None:
    """A few records of many files show what the first file alone would not."""
    for number in range(30):
        (raw / f"{number:02d}.ndjson").write_text(json.dumps({"n": number if number < 25 else "late"}) + "\n" * 2)
    assert types(suggest(raw, "--sample", 10)) == {"n": "string"}
    few = suggest(raw, "--sample", 1)
    assert (types(few), "Types of 1 record, from 1 of 30 files" in few.stdout) == ({"n": "long"}, True)


@pytest.mark.parametrize(("offered", "most"), [(0, 3), (1, 3), (3, 3), (7, 3), (1000, 10), (5, 1)])
def test_a_spread(offered: int, most: int) -> None:
    """It keeps at most so many, in order, the first and one near the end among them."""
    chosen, number = spread(range(offered), most)
    assert (number, len(chosen)) == (offered, min(offered, most))
    assert chosen == sorted(set(chosen))
    assert not offered or chosen[0] == 0
    assert most == 1 or not offered or chosen[-1] >= offered * 0.85 - 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "holds no files with data"),
        (b"no json\n", "no record with a key in 1 of 1 files"),
        (b"{}\n", "no record"),
    ],
)
def test_nothing_to_suggest(raw: Path, content: bytes | None, expected: str) -> None:
    """Without any key there is no schema file, and no empty output that a redirection would keep as one."""
    if content is not None:
        (raw / "a.ndjson").write_bytes(content)
    result = suggest(raw)
    assert (result.exit_code, result.stdout) == (2, "")
    assert expected in result.stderr


def test_wrong_usage(raw: Path) -> None:
    """Options that exclude each other, and those of other commands, are refused."""
    (raw / "a.ndjson").write_bytes(b'{"a": 1}\n')
    for words in [(), (raw, "--all", "--sample", 5), (raw, "--json"), (raw, raw / "no"), ("s3://",)]:
        assert suggest(*words).exit_code == 2
    assert "expected SRC (a folder, a file, a quoted pattern, s3://bucket/prefix), or --in DST" in suggest().stderr
    assert CliRunner().invoke(command, ["schema", "show", "--all"]).exit_code == 2
