"""Promises of `compactor compact` about envelopes: they are named, and no success until someone chose what a row is."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from compactor.ndjson.files.envelopes import MIN_ELEMENTS, recognise_envelope
from tests.support import extras
from tests.support.compacting import call, write

pytestmark = extras.NATIVE.needed

EVENTS = [{"eventName": f"E{number}", "userIdentity": {"type": "Root"}} for number in range(120)]
CLOUDTRAIL = json.dumps({"Records": EVENTS}).encode()
SUBSCRIPTION = json.dumps(
    {"messageType": "DATA_MESSAGE", "owner": "1", "logGroup": "g", "logEvents": [{"id": "1", "message": "x"}]}
).encode()
OTLP = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "x"}}]}]}]}).encode()
ORDERS = json.dumps({"id": 1, "items": [{"sku": number} for number in range(MIN_ELEMENTS)]}).encode()


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "raw"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("record", "is_only", "expected"),
    [
        (CLOUDTRAIL, True, ("Records", 120)),
        (CLOUDTRAIL, False, ("Records", 120)),
        (SUBSCRIPTION, False, ("logEvents", 1)),
        (OTLP, False, ("resourceLogs", 1)),
        (json.dumps({"data": EVENTS}).encode(), True, ("data", 120)),
        (json.dumps({"data": EVENTS}).encode(), False, None),  # each line may be an event with details
        (json.dumps({"data": EVENTS[: MIN_ELEMENTS - 1]}).encode(), True, None),
        (b'{"data": [%s{"deep": %s}]}' % (b"{}, " * 20, b"[" * 500 + b"]" * 500), True, ("data", 21)),
        (json.dumps({"data": EVENTS}, indent=8).encode() + b"\n" * 9_000, True, ("data", 120)),
        (json.dumps({"note": "x" * 5_000, "data": EVENTS[:MIN_ELEMENTS]}).encode(), True, None),
        (ORDERS, False, None),
        (b'{"Records": []}', True, None),
        (b'{"Records": "none"}', True, None),
        (b'{"Records": [1, 2]}', True, None),
        (b'{"digestStartTime": "x", "logFiles": []}', True, None),
        (b'{"Records": [{"cut', True, None),
        (b"[1]", True, None),
        (b"", True, None),
    ],
)
def test_what_is_an_envelope(record: bytes, is_only: bool, expected: tuple[str, int] | None) -> None:
    assert recognise_envelope(record, is_only=is_only) == expected


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (gzip.compress(CLOUDTRAIL), (), "looks like an envelope: 120 elements in `Records`"),
        (b"\xef\xbb\xbf\n \n" + CLOUDTRAIL + b"\n", (), "120 elements in `Records`"),
        (SUBSCRIPTION, (), "1 element in `logEvents`"),
        ((OTLP + b"\n") * 3, (), "1 element in `resourceLogs` of the first of 3 rows"),
        (json.dumps({"Records": EVENTS}, indent=1).encode(), ("--format", "json"), "120 elements in `Records`"),
    ],
)
def test_an_envelope_is_named(raw: Path, content: bytes, options: tuple[str, ...], words: str) -> None:
    """A user who chose a format has chosen what a row is: the envelope is named as well, and nothing is wrong."""
    write(raw / "t.json", content)
    result = call(raw, raw.parent / "rows", *options)
    assert words in result.stdout
    assert result.exit_code == (0 if options else 3)
    assert ("--format ndjson" in result.stdout) is not bool(options)


def test_an_envelope_is_named_once(raw: Path, tmp_path: Path) -> None:
    """The call that took the file names it; a later one with `--format ndjson` takes others without a fault."""
    write(raw / "a.json", CLOUDTRAIL)
    first = document(raw, tmp_path / "rows")
    assert first["needs_operator"]
    assert first["envelopes"] == [{"uri": f"{raw}/a.json", "key": "Records", "elements": 120, "rows": 1}]
    assert call(raw, tmp_path / "rows").exit_code == 0
    write(raw / "b.json", CLOUDTRAIL)
    again = call(raw, tmp_path / "rows", "--format", "ndjson")
    assert "b.json" in again.stdout
    assert again.exit_code == 0
    write(raw / "c.json", CLOUDTRAIL)
    assert call(raw, tmp_path / "rows").exit_code == 0


def test_events_with_arrays_are_rows(raw: Path, tmp_path: Path) -> None:
    """Lines that hold arrays of objects are ordinary, as are small files of one event each."""
    write(raw / "orders.json", (ORDERS + b"\n") * 50)
    write(raw / "one.json", b'{"id": 7, "items": [{"sku": 1}, {"sku": 2}]}\n')
    found = document(raw, tmp_path / "rows")
    assert found["envelopes"] == []
    assert not found["needs_operator"]


def document(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call(*arguments, "--json").stdout)
    return found
