"""Promises of `compactor data erase` on plain folders, with the native engine: what it does, prints and ends with."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from compactor.adapters.local.store import LocalStore
from compactor.cli.commands.verify import show_verifications
from compactor.cli.entry import compactor as command
from compactor.ndjson.files.scratch import scratch_folder
from compactor.ops.verify.report import VerifyResult
from tests.support import extras

pytestmark = extras.NATIVE.needed

DAY = "2025-12-21"
LINES = (
    b'{"id": 7, "user": {"id": "\\u0061nn", "tags": ["x"]}}\n'
    b'{"id": 8, "user": {"id": "bob"}}\n'
    b'{"id": "seven", "user": [{"id": "ann"}]}\n'
    b"broken ann\n"
)


class Lake:
    """A folder that `compact` has turned into another one."""

    def __init__(self, root: Path, *options: str) -> None:
        self.raw, self.out, self.values = root / "raw", root / "rows", root / "values.txt"
        self.raw.mkdir()
        (self.raw / f"{DAY}-a.ndjson").write_bytes(LINES)
        (self.raw / f"{DAY}-b.ndjson.gz").write_bytes(gzip.compress(LINES, mtime=0))
        (self.raw / f"{DAY}-c.ndjson").write_bytes(b'{"id": 9}\n')
        for path in self.raw.iterdir():
            os.utime(path, (0, 0))
        assert self.compact(*options).exit_code == 0

    def compact(self, *options: str) -> Result:
        return CliRunner().invoke(command, ["compact", str(self.raw), str(self.out), *options])

    def call(self, *arguments: str) -> Result:
        result = CliRunner().invoke(command, [*arguments, str(self.out)])
        assert "Traceback" not in result.stderr
        return result

    def erase(self, key: str, values: str, *arguments: str) -> Result:
        self.values.write_text(values)
        return self.call("data", "erase", "--key", key, "--value-file", str(self.values), *arguments)

    def formats(self) -> set[tuple[str, str]]:
        """The Parquet schemas of the files, with field ids, and their codecs."""
        files = [pq.ParquetFile(path) for path in self.out.rglob("*.parquet")]
        return {
            (str(each.schema).partition(" {")[2], each.metadata.row_group(0).column(0).compression) for each in files
        }

    def ids(self) -> list[Any]:
        table = ds.dataset(self.out, format="parquet").to_table()
        return sorted(table.column("id").to_pylist(), key=str)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_a_person_goes(lake: Lake) -> None:
    """By a key in nested text, however it is written; verify adds up, and no later call brings anything back."""
    assert lake.erase("/user/id", "ann\n\n", "--dry-run").stdout.startswith("Would erase 4 rows and 2 rejected lines")
    assert len(lake.ids()) == 7
    kept = lake.erase("/user/id", "ann", "--yes")
    assert (kept.exit_code, kept.stdout.splitlines()[0]) == (
        3,
        "Erased 4 rows and 2 rejected lines of 1 manifest; 1 searched",
    )
    assert lake.ids() == ["8", "8", "9"]
    assert lake.compact().exit_code == 0
    assert lake.ids() == ["8", "8", "9"]
    verified = lake.call("verify", "--deep")
    assert (verified.exit_code, "9 = 3 rows + 0 rejects + 0 blank + 6 erased" in verified.stdout) == (0, True)
    gone = lake.erase("/user/id", "ann", "--yes", "--inputs", "delete", "--by", "privacy desk")
    assert (gone.exit_code, [path.name for path in lake.raw.iterdir()]) == (0, [f"{DAY}-c.ndjson"])
    assert lake.call("verify", "--deep").exit_code == 0
    records = sorted(Path(f"{lake.out}.compactor/state/changes/erased").iterdir())
    assert len(records) == 2
    assert "privacy desk" in "".join(path.read_text() for path in records)
    assert not any(b"ann" in path.read_bytes() for path in records)


def test_a_typed_column(tmp_path: Path) -> None:
    """A number is found in its column, a value that does not fit among the rescued ones; files have the same form."""
    (tmp_path / "schema.toml").write_text('[[columns]]\nname = "id"\ntype = "long"\n')
    lake = Lake(tmp_path, "--schema", str(tmp_path / "schema.toml"))
    before = lake.formats()
    document = json.loads(lake.erase("id", "7\nseven\n", "--yes", "--json").stdout)
    assert [(each["rows"], each["rejected_lines"]) for each in document["erased"]] == [(4, 0)]
    assert lake.ids() == [8, 8, 9]
    assert lake.formats() == before
    assert lake.call("verify").exit_code == 0
    beyond = lake.erase("/id/$numberLong", "8", "--yes")
    assert (beyond.exit_code, "goes on after a value of type long" in beyond.stderr) == (2, True)


def test_a_nested_column(tmp_path: Path) -> None:
    """A value is found in its part, or in the rescued text; files have the same form. No whole object can be erased."""
    kind = "struct<id: string, tags: list<string>>"
    (tmp_path / "schema.toml").write_text(f'[[columns]]\nname = "user"\ntype = "{kind}"\n')
    lake = Lake(tmp_path, "--schema", str(tmp_path / "schema.toml"))
    before = lake.formats()
    whole = lake.erase("user", '{"id": "bob"}', "--yes")
    assert (whole.exit_code, "-> expected plain values" in whole.stderr) == (2, True)
    document = json.loads(lake.erase("/user/id", "ann", "--yes", "--json").stdout)
    assert [(each["rows"], each["rejected_lines"]) for each in document["erased"]] == [(4, 2)]
    assert lake.ids() == ["8", "8", "9"]
    assert lake.formats() == before
    assert lake.call("verify", "--deep").exit_code == 0


def test_a_replaced_file_brings_nothing_back(lake: Lake) -> None:
    """With the new version of one file, the others of its manifest would be read again: that is refused."""
    assert lake.erase("/user/id", "ann", "--yes").exit_code == 3
    (lake.raw / f"{DAY}-c.ndjson").write_bytes(b'{"id": 99}\n')
    os.utime(lake.raw / f"{DAY}-c.ndjson", (1, 1))
    refused = lake.compact("--on-replaced", "rebuild")
    assert "erased on request" in refused.stdout + refused.stderr
    assert lake.ids() == ["8", "8", "9"]


def test_what_is_asked_for_wrongly(lake: Lake) -> None:
    """A prompt without a terminal, no values, or bytes that are no text: nothing is erased, nothing is quoted."""
    assert lake.erase("id", "7").exit_code == 2
    assert "0 values" in lake.erase("id", "\n", "--yes").stderr
    lake.values.write_bytes(b"secret\xff")
    wrong = lake.call("data", "erase", "--key", "id", "--value-file", str(lake.values), "--yes")
    assert (wrong.exit_code, "UTF-8" in wrong.stderr, "secret" in wrong.stderr) == (2, True, False)
    assert lake.erase("", "7", "--yes").exit_code == 2
    unknown = lake.erase("/usr/id", "ann", "--dry-run")
    assert "no column has the key usr; did you mean user?" in unknown.stderr
    missing = lake.call("data", "erase", "--key", "id", "--value-file", "no such file", "--yes")
    assert (missing.exit_code, "No such file" in missing.stderr) == (2, True)
    assert len(lake.ids()) == 7


def test_streams_show_erased_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """In a column of their own, if any stream has some."""
    show_verifications({"a": VerifyResult(lines=2, rows=2), "b": VerifyResult(lines=2, rows=1)})
    assert "erased" not in capsys.readouterr().out
    show_verifications({"a": VerifyResult(lines=2, rows=2), "b": VerifyResult(lines=2, rows=1, erased_lines=1)})
    head, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[head.index("erased")] for row in rows] == ["0", "1", "1"]


def test_what_killed_calls_left_goes_too(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files in the state and scratch folders; what a living process holds stays, and is named."""
    scratch = lake.raw.parent / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    staging = Path(f"{lake.out}.compactor/state/staging/m1")
    staging.mkdir(parents=True)
    left = [staging / f".~compactor-{'0' * 32}", scratch / ".~compactor-abcdefgh" / "rejects.parquet"]
    left[1].parent.mkdir()
    for path in left:
        path.write_text("ann")
    other = scratch / "compactor-abcdefgh"
    other.mkdir()
    with scratch_folder() as held, LocalStore().writer(str(staging / "rows")) as writer:
        writer.write(b"ann")
        result = lake.erase("/user/id", "ann", "--inputs", "delete", "--yes")
        assert (result.exit_code, "a temporary file in use" in result.stdout) == (3, True)
        assert not any(path.exists() for path in left)
        assert held.exists()
    assert list(scratch.iterdir()) == [other]
    assert lake.erase("/user/id", "ann", "--yes").exit_code == 0
