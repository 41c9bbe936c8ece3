"""What each release wrote: a folder that it compacted, as it left it, and the keys of its JSON documents.

Places in a state are absolute. In these they begin with the current folder of the process, so that a copy is the same
state wherever it is.
"""

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import compactor as command
from compactor.settings import places
from tests.support.json_shapes import Shape, shape_of_schema
from tests.support.record_shapes import records
from tools.json_schemas import FOLDER, NAMES

RELEASES = Path(__file__).resolve().parents[1] / "cases" / "releases"
HERE = "/proc/self/cwd"
RAW, ROWS = f"{HERE}/raw", f"{HERE}/rows"

WRITTEN_AT = 1_767_225_600
"""When each input file was written last: git does not keep the time, and it is part of a file's version."""

QUESTIONS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "--deep", ROWS),
    "status": ("status", ROWS),
    "rejects": ("rejects", ROWS),
    "schema": ("schema", ROWS),
    "report": ("report", ROWS, "--since", "2025-12-01"),
    "rebuild": ("rebuild", ROWS, "--dry-run"),
    "redrive": ("redrive", "rejects", ROWS, "--dry-run"),
    "compact": ("compact", RAW, ROWS),
    "trace": ("trace", ROWS, f"{RAW}/2025-12-01-a.ndjson"),
    "trace of a replaced file": ("trace", ROWS, f"{RAW}/2025-12-02-c.ndjson"),
    "trace of a truncated file": ("trace", ROWS, f"{RAW}/2025-12-02-cut.ndjson.gz"),
}
"""Calls that change nothing, whose documents are stored."""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def document(*arguments: str) -> tuple[int, Any]:
    """The exit code of a command and the document that it prints."""
    result = call(*arguments, "--json")
    assert result.stdout.startswith("{"), result.output
    return result.exit_code, json.loads(result.stdout)


@contextmanager
def inside(folder: Path) -> Iterator[Path]:
    """Work in a folder whose places are written as those of the current one."""
    resolved = places.real_place

    def unresolved(place: str) -> str:
        return place if place.startswith(f"{HERE}/") else resolved(place)

    with pytest.MonkeyPatch.context() as patched, chdir(folder):
        patched.setattr(places, "real_place", unresolved)
        yield folder


def write(name: str, content: bytes) -> None:
    """An input file of the current folder."""
    path = Path("raw", name)
    path.write_bytes(content)
    os.utime(path, (WRITTEN_AT, WRITTEN_AT))


def restored(release: Path, folder: Path) -> None:
    """Copy what a release left, with the times of its input."""
    shutil.copytree(release / "folder", folder)
    for path in (folder / "raw").iterdir():
        os.utime(path, (WRITTEN_AT, WRITTEN_AT))


def store_release(release: Path) -> None:
    """Write what this release leaves of a folder, over several calls, and what it says of that."""
    shutil.rmtree(release, ignore_errors=True)
    (release / "folder" / "raw").mkdir(parents=True)
    with inside(release / "folder"):
        for number, step in enumerate(_STEPS):
            step()
            code = call("compact", RAW, ROWS, *(_OPTIONS.get(number, ()))).exit_code
            assert code == 3, "the quarantined files need a person after each call"
        answers = {name: document(*words) for name, words in QUESTIONS.items()}
    stored = {name: {"code": code, "document": found} for name, (code, found) in answers.items()}
    _write_json(release / "documents.json", stored)
    _write_json(release / "shapes.json", shapes())
    _write_json(release / "records.json", records())


def shapes() -> dict[str, Shape]:
    """For each command: every key that its documents have, with its types."""
    return {name: shape_and_maps(name)[0] for name in NAMES}


def shape_and_maps(name: str) -> tuple[Shape, frozenset[str]]:
    """The keys of a command's documents with their types, and the paths of objects whose keys are data."""
    return shape_of_schema(json.loads((FOLDER / f"{name}.schema.json").read_text()))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def _row(number: int, **more: object) -> bytes:
    row = {"id": number, "price": number + 0.5, "at": f"2025-12-01T10:00:{number:02}Z", "paid": True, **more}
    return json.dumps(row).encode() + b"\n"


def _begin() -> None:
    """Good lines, a bad one, a blank one, and two files that are quarantined."""
    write("2025-12-01-a.ndjson", _row(1) + b"{broken\n\n" + _row(2) + _row(3))
    write("2025-12-01-b.ndjson.gz", gzip.compress(_row(4) + _row(5), mtime=0))
    write("2025-12-02-c.ndjson", _row(6) + _row(7))
    write("2025-12-02-cut.ndjson.gz", gzip.compress(b"".join(map(_row, range(90, 100))), mtime=0)[:-9])
    write("table.csv", b"id,price\n90,1.5\n91,2.5\n")


def _continue() -> None:
    """A key that appears late, a value that misfits, and a manifest that nothing can read."""
    write("2025-12-02-late.ndjson", _row(8, price="n/a", coupon="X1"))
    Path("rows.compactor/manifests/torn.json").write_text("{")


def _replace() -> None:
    write("2025-12-02-c.ndjson", _row(6) + _row(7) + _row(9))


def _redrive() -> None:
    """The bad line is tried again, and is as wrong as before."""
    assert call("redrive", "rejects", ROWS, "--yes").exit_code == 3


_STEPS: tuple[Callable[[], None], ...] = (_begin, _continue, _replace, _redrive)
_OPTIONS = {0: ("--types", "infer"), 2: ("--on-replaced", "rebuild")}
IDS = range(1, 10)
