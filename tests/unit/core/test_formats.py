"""Records that two releases share: neither misreads the other's, and what is too new is named and left alone."""

import ast
import json
import os
from pathlib import Path

import pytest

from compactor import __version__
from compactor.core.documents.formats import FORMATS, newer_format
from compactor.core.documents.records import OUTCOME, read_record
from compactor.core.errors import RecordTooNew, RecordUnreadable
from tests.support.record_shapes import MODELS, lost_in, records, shape_of
from tests.support.releases import RELEASES
from tests.support.stored import UPDATE

ROOT = Path(__file__).resolve().parents[3]
OVERWRITTEN = (
    *("BreakerClosed", "ClosedTotals", "FinishedBatches", "LastCleaning", "RecentCommit", "RunHeartbeat"),
    *("JobSeen", "LastClosing", "LastUpkeep", "TableProgress", "Told", "TopicProgress", "KinesisProgress"),
)
"""Kinds that processes of both releases overwrite, so that neither may wait for the other."""

NOW = records()

if os.environ.get(UPDATE) == "1":
    (RELEASES / __version__ / "records.json").write_text(json.dumps(NOW, indent=1, sort_keys=True) + "\n")

STORED = {path.name: json.loads((path / "records.json").read_text()) for path in sorted(RELEASES.iterdir())}


def test_every_kind_of_record_is_in_the_table() -> None:
    """Each kind that the code stores has its formats, and a shape that is held against those of earlier releases."""
    assert FORMATS.keys() == MODELS.keys()
    assert all(1 <= each.writes <= each.reads for each in FORMATS.values())
    assert all(FORMATS[kind].reads == 1 for kind in OVERWRITTEN)
    found = set()
    for folder in ("core", "control", "schema"):
        for path in (ROOT / "compactor" / folder).rglob("*.py"):
            classes = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))
            found |= {
                node.name
                for node in classes
                if {"Document", "PlanProgress"} & {ast.unparse(base) for base in node.bases}
            }
    parts = {"FileReport", "RangeReport", "StagedFile", "Rebuild", "RedrivenInput", "Commit", "DeadLetter"}
    parts |= {"ManifestSums", "OpenLetter", "OpenFile", "SettledFile", "DoubledVersion", "DateSpan", "BatchedManifest"}
    parts |= {"Erased", "ErasedManifest", "PartitionProgress", "ShardLink", "ShardLoss", "MergedFile", "PlanProgress"}
    parts |= {"LastCall"}
    assert found - parts <= FORMATS.keys()


@pytest.mark.parametrize("release", STORED)
def test_records_of_each_release_are_read(release: str) -> None:
    """Within a format no key is gone, has another type or other words, or is newly required; else it is a new format.

    A release that is not out yet may still change: store it anew.
    """
    for kind, before in STORED[release].items():
        assert NOW[kind]["reads"] >= before["writes"], f"{kind}: this release does not read what {release} wrote"
        if NOW[kind]["writes"] == before["writes"]:
            assert (kind, lost_in(before["shape"], NOW[kind]["shape"])) == (kind, [])


def test_the_release_before_reads_what_this_one_writes() -> None:
    """So both may work on one state: a format is written one release after the first release that reads it."""
    earlier = [name for name in STORED if name != __version__] or [__version__]
    last = STORED[max(earlier, key=lambda name: [int(part) for part in name.split(".")])]
    assert {
        kind: each.writes for kind, each in FORMATS.items() if kind in last and each.writes > last[kind]["reads"]
    } == {}


def test_shapes_tell_what_another_release_would_miss() -> None:
    """A word, a required key, a type and a key that is gone are found; a new optional key is none."""
    before = shape_of(MODELS["Accepted"])
    assert before["kind"] == "string = manifest part refused revoked, required"
    assert before["manifest.files[].size_bytes"] == "integer or null"
    assert lost_in(before, {**before, "note": "string", "note.by": "string, required"}) == []
    assert lost_in(before, {**before, "note": "string, required"}) == ["note is new and required"]
    assert lost_in({**before, "old": "string"}, before) == ["old is gone"]
    [fault] = lost_in(before, {**before, "kind": before["kind"].replace("part", "part split")})
    assert fault.startswith("kind is 'string = manifest part split")


NEWER = b'{"record_format": 2, "record_release": "0.3.0", "kind": "merge"}'


def test_a_newer_record_names_its_release() -> None:
    """Its reader says what to upgrade; a damaged record is something else."""
    with pytest.raises(RecordTooNew) as raised:
        read_record(OUTCOME.validate_json, NEWER, "s3://w/o.json", kind="Outcome", expected="an outcome")
    assert str(raised.value) == (
        "s3://w/o.json: Outcome has format 2, and this release reads up to format 1; "
        "deploy release 0.3.0 or a later one"
    )
    assert "deploy the release" in raised.value.next_move
    with pytest.raises(RecordUnreadable) as damaged:
        read_record(OUTCOME.validate_json, NEWER[:-1], "s3://w/o.json", kind="Outcome", expected="an outcome")
    assert type(damaged.value) is RecordUnreadable


@pytest.mark.parametrize(
    "data",
    [
        b'{"record_format": 1}',
        b'{"record_format": true}',
        b'{"record_format": "2"}',
        b'{"record_format": 2.5}',
        b'{"files": [{"record_format": 2}]}',
        b'["record_format", 2]',
        b'"record_format"',
        b'{"record_format": 2',
        b"\xff record_format",
        b"",
    ],
)
def test_only_a_record_says_its_format(data: bytes) -> None:
    """What merely contains the word is judged by its content."""
    assert newer_format(data, "Accepted") == ""


def test_a_release_is_named_only_if_it_is_one() -> None:
    """What stands in for a release is not shown: it may be anything."""
    for release in ("\x1b[31m", "x" * 50, "", None, 3, ["0.3.0"]):
        data = json.dumps({"record_format": 2, "record_release": release}).encode()
        assert newer_format(data, "Done").endswith("; deploy the release that wrote it or a later one")
