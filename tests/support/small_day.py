"""The example in `examples/small_day`: its files, and what must come of them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "small_day"
INPUT = FOLDER / "input"
MANIFEST = FOLDER / "manifest.json"


def input_files() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(INPUT.iterdir())}


def expected(name: str) -> list[dict[str, Any]]:
    """The objects of a file in `expected`, in an order of their own."""
    return _sorted(json.loads(line) for line in (FOLDER / "expected" / name).read_text().splitlines())


def shown_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows as `expected/rows.ndjson` shows them."""
    return _sorted(dict(row) for row in rows)


def shown_rejects(rejects: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rejects as `expected/rejects.ndjson` shows them: by the file's name, with bytes that are no UTF-8 as escapes."""
    return _sorted(
        {
            "file": each["source_uri"].rsplit("/", 1)[-1],
            "line_number": each["line_number"],
            "byte_offset": each["byte_offset"],
            "reason": each["reason"],
            "raw": each["raw"].decode("utf-8", "backslashreplace"),
        }
        for each in rejects
    )


def _sorted(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
