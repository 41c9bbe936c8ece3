"""Promises of `compactor.compact`: the rows, the end and the errors of the command; one process, many calls."""

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError
from itertools import groupby
from pathlib import Path
from threading import get_ident
from typing import Any

import pyarrow.dataset as ds
import pytest

import compactor
from tests.support import extras
from tests.support.compacting import call, write
from tests.support.sampling import few

pytestmark = extras.NATIVE.needed

GOOD = b'{"id": 1}\n{"id": 2}\n\n'
DAYS = [f"2025-12-{day:02d}" for day in range(1, 7)]

FOLDERS: dict[str, tuple[dict[str, bytes], list[str], dict[str, Any]]] = {
    "good lines": ({"a.ndjson": GOOD, ".hidden": GOOD, "_SUCCESS": b""}, [], {}),
    "a few rejects": ({"a.ndjson": GOOD + b"no json\n", "b.gz": gzip.compress(GOOD)}, [], {}),
    "few rows": ({"a.ndjson": b"no\nno\nno\n" + GOOD}, [], {}),
    "elements, deep": (
        {"a.json": b'[{"id": 1},\n{"id": "x"}]', "country=DE/.b.json": b'{"id": 3}'},
        ["--format", "json", "--types", "infer", "--names", "exact", "--hive-keys", "--hidden", "--deep"],
        {"format": "json", "types": "infer", "names": "exact", "hive_keys": True, "hidden": True, "deep": True},
    ),
    "no rows": ({"a.csv": b"id,name\n1,a\n2,b\n"}, [], {}),
    "a truncated file": ({"a.ndjson": GOOD, "b.gz": gzip.compress(GOOD * 99)[:-9]}, [], {}),
    "a dry run": ({"a.ndjson": GOOD}, ["--dry-run"], {"dry_run": True}),
}
"""Files, options of the command, and the same for the function."""

EQUAL = (
    *("new_files", "new_bytes", "planned_before", "skipped", "held", "is_unfinished", "needs_operator"),
    *("dry_run", "engine", "engine_reason"),
)


def rows(folder: Path) -> list[dict[str, Any]]:
    """All rows, in an order of their own."""
    found = [row for file in folder.rglob("*.parquet") for row in ds.dataset(file).to_table().to_pylist()]
    return sorted(found, key=str)


def ids(folder: Path) -> Counter[str]:
    return Counter(row["id"] for row in rows(folder))


@pytest.mark.parametrize("name", few(FOLDERS, 3))
def test_the_function_does_what_the_command_does(raw: Path, name: str) -> None:
    """The same files give the same rows, figures and exit code by both, and nothing is printed by the function."""
    files, options, arguments = FOLDERS[name]
    for path, data in files.items():
        (raw / path).parent.mkdir(exist_ok=True)
        write(raw / path, data)
    by_command = call(raw, "by_command", *options, "--json")
    told = json.loads(by_command.stdout)
    result = compactor.compact(raw, Path("by_function"), **arguments)
    assert result.exit_code == by_command.exit_code
    assert result.complete is (by_command.exit_code == 0 and not result.dry_run)
    assert rows(Path("by_function")) == rows(Path("by_command"))
    assert bool(result.problems) is (result.exit_code != 0)
    assert {key: getattr(result, key) for key in EQUAL} == {key: told[key] for key in EQUAL}
    assert {Path(each) for each in result.outputs} == set(Path("by_function").resolve().rglob("*.parquet"))
    if result.dry_run:
        assert (told["run"], result.verified, result.rows) == (None, None, 0)
        return
    assert (result.rows, result.rejected_lines) == (told["run"]["records"], told["run"]["rejected_lines"])
    assert [each.uri for each in result.quarantined_files] == [
        each["uri"] for each in told["verified"]["quarantined_files"]
    ]
    verified = compactor.verify("by_function", deep=bool(arguments.get("deep")))
    assert verified == result.verified
    assert {name: getattr(verified, name) for name in ("lines", "rows", "rejects_by_reason", "files_by_status")} == {
        name: told["verified"][name] for name in ("lines", "rows", "rejects_by_reason", "files_by_status")
    }


def test_sources_are_text_paths_or_several(raw: Path) -> None:
    """A file, a folder and a pattern, as text or as paths; what was taken is not taken again."""
    for name in ("a.ndjson", "b.ndjson", "c.ndjson"):
        write(raw / name, b'{"id": "%s"}\n' % name.encode())
    assert compactor.compact([raw / "a.ndjson", "raw/b.*"], "rows").new_files == 2
    again = compactor.compact((raw,), Path("rows"))
    assert (again.new_files, again.planned_before, again.complete) == (1, 2, True)
    assert ids(Path("rows")) == {"a.ndjson": 1, "b.ndjson": 1, "c.ndjson": 1}


ERRORS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "missing folder": (["none", "rows"], {"src": "none", "dst": "rows"}),
    "no data": (["empty", "rows"], {"src": "empty", "dst": "rows"}),
    "overlap": (["raw", "raw/rows"], {"src": "raw", "dst": "raw/rows"}),
    "not a place": (["http://x/y", "rows"], {"src": "http://x/y", "dst": "rows"}),
    "other names": (["raw", "old", "--names", "exact"], {"src": "raw", "dst": "old", "names": "exact"}),
    "no schema": (["raw", "rows", "--schema", "none.toml"], {"src": "raw", "dst": "rows", "schema": "none.toml"}),
    "schema with faults": (
        ["raw", "rows", "--schema", "bad.toml"],
        {"src": "raw", "dst": "rows", "schema": Path("bad.toml")},
    ),
    "schema and types": (
        ["raw", "rows", "--schema", "bad.toml", "--types", "infer"],
        {"src": "raw", "dst": "rows", "schema": "bad.toml", "types": "infer"},
    ),
    "state in DST": (["raw", "rows", "--state", "rows/s"], {"src": "raw", "dst": "rows", "state": "rows/s"}),
}


@pytest.mark.parametrize("name", few(ERRORS, 4))
def test_errors_are_those_of_the_command(raw: Path, name: str) -> None:
    """What ends the command with 2 raises a SettingsError, with the same text, and nothing is written."""
    write(raw / "a.ndjson", GOOD)
    Path("empty").mkdir()
    Path("bad.toml").write_text('[[columns]]\nname = "a"\ntype = "money"\n[[columns]]\nname = 1\n')
    compactor.compact("raw", "old")
    arguments, keywords = ERRORS[name]
    told = call(*arguments)
    with pytest.raises(compactor.SettingsError) as raised:
        compactor.compact(**keywords)
    shown = [line.removeprefix("compactor: ") for line in told.stderr.splitlines() if line.startswith("compactor: ")]
    assert (told.exit_code, shown) == (2, str(raised.value).splitlines())
    assert not Path("rows").exists()


def test_an_unwritable_destination(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of the settings, with the words of the command."""
    write(raw / "a.ndjson", GOOD)
    monkeypatch.setattr("compactor.wiring.folder.os.access", lambda *_: False)
    with pytest.raises(compactor.SettingsError) as raised:
        compactor.compact(raw, "rows")
    assert f"compactor: {raised.value}\n" == call(raw, "rows").stderr
    assert str(raised.value) == f"DST: cannot write to {raw.parent}: permission denied"


@pytest.mark.parametrize(
    ("keywords", "fault"),
    [
        ({"src": []}, "SRC: not given -> expected folders, files or patterns"),
        ({"src": Path("s3://bucket/raw")}, "SRC: 's3:/bucket/raw' -> expected s3://bucket/prefix"),
        ({"types": "guess"}, "--types: 'guess' -> expected 'infer'"),
        ({"on_replaced": "drop"}, "--on-replaced: 'drop' -> expected one of 'quarantine', 'rebuild', 'append'"),
        ({"names": "short"}, "schema.names: \"short\" -> expected 'safe' or 'exact'"),
        ({"format": "csv"}, 'input.format: "csv" -> expected'),
        ({"engine": "duckdb"}, 'convert.engine: "duckdb" -> expected'),
    ],
)
def test_what_only_python_can_get_wrong(raw: Path, keywords: dict[str, Any], fault: str) -> None:
    """Words that the command line would not take are refused before anything is written."""
    write(raw / "a.ndjson", GOOD)
    with pytest.raises(compactor.SettingsError) as raised:
        compactor.compact(**{"src": raw, "dst": "rows", **keywords})
    assert fault in str(raised.value)
    assert [path.name for path in raw.parent.iterdir()] == ["raw"]


def test_progress(raw: Path) -> None:
    """The callback learns of bytes, rows and steps, one call at a time, and ends with all of them."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", b'{"id": %d}\n' % number)
    told: list[compactor.Progress] = []
    result = compactor.compact(raw, "rows", progress=told.append)
    total = sum(path.stat().st_size for path in raw.iterdir())
    assert (told[-1].step, told[-1].bytes_read, told[-1].bytes_total) == ("verifying", total, total)
    assert told[-1].rows == result.rows == len(DAYS)
    assert [step for step, _ in groupby(each.step for each in told)] == ["planning", "compacting", "verifying"]
    assert sorted({each.bytes_read for each in told}) == list(dict.fromkeys(each.bytes_read for each in told))


def test_an_error_of_the_callback_stops_the_work(raw: Path) -> None:
    """It is raised by the call, whichever thread it came from, and the next call continues."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", b'{"id": %d}\n' % number)
    threads: list[int] = []

    def cancel(progress: compactor.Progress) -> None:
        threads.append(get_ident())
        if progress.rows:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        compactor.compact(raw, "rows", progress=cancel)
    assert threads[-1] != get_ident()
    assert 0 < sum(ids(Path("rows")).values()) < len(DAYS)
    assert compactor.compact(raw, "rows").complete
    assert ids(Path("rows")) == {str(number): 1 for number in range(len(DAYS))}


def test_a_callback_that_raises_at_once(raw: Path) -> None:
    """Its error comes out of the call, although there is nothing to stop yet."""
    write(raw / f"{DAYS[0]}.ndjson", b'{"id": 1}\n')

    def refuse(_: compactor.Progress) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        compactor.compact(raw, "rows", progress=refuse)
    assert compactor.compact(raw, "rows").complete
    with pytest.raises(ValueError, match="no"):
        compactor.verify("rows", progress=refuse)


def test_ctrl_c_raises_and_loses_nothing(raw: Path) -> None:
    """KeyboardInterrupt comes out of the call after the manifests in flight; no run is left, and a call continues."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", b'{"id": %d}\n' % number)

    def interrupt(progress: compactor.Progress) -> None:
        if progress.rows == 1:
            os.kill(os.getpid(), signal.SIGINT)

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyboardInterrupt):
        compactor.compact(raw, "rows", progress=interrupt)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    assert 0 < sum(ids(Path("rows")).values()) < len(DAYS)
    assert list(Path("rows.compactor/state/runs").glob("*.json")) == []
    again = compactor.compact(raw, "rows")
    assert (again.complete, again.new_files, again.planned_before) == (True, 0, len(DAYS))
    assert ids(Path("rows")) == {str(number): 1 for number in range(len(DAYS))}
    assert list(Path("rows.compactor/state").rglob("*failure*")) == []  # no attempt counts as failed


def test_two_threads_on_one_destination(raw: Path) -> None:
    """Calls need no main thread, and two at once take each line once."""
    for number, day in enumerate(DAYS):
        write(raw / f"{day}.ndjson", b'{"id": %d}\n' % number)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda _: compactor.compact(raw, "rows"), range(2)))
    assert ids(Path("rows")) == {str(number): 1 for number in range(len(DAYS))}
    assert sum(each.new_files for each in results) == len(DAYS)
    assert compactor.compact(raw, "rows").complete


def test_results_are_values(raw: Path) -> None:
    """They are frozen, and can be sent to other processes."""
    write(raw / "a.ndjson", GOOD)
    write(raw / "b.gz", gzip.compress(GOOD)[:-9])
    result = compactor.compact(raw, "rows")
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - it is our own
    with pytest.raises(FrozenInstanceError):
        result.seconds = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        result.verified.rows = 3


def test_nothing_is_printed(raw: Path) -> None:
    """Stdout and stderr stay empty, also where something is quarantined."""
    write(raw / "a.ndjson", GOOD)
    write(raw / "b.gz", gzip.compress(GOOD)[:-9])
    script = "import compactor; raise SystemExit(compactor.compact('raw', 'rows').exit_code)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"", b"")
