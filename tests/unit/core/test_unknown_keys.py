"""Keys that a newer release added to a record outlive a copy by this one; what other writers add gets nowhere."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter

from compactor.adapters.memory.store import MemoryStore
from compactor.cli.ui.output import print_json
from compactor.control.notices import Notices, Told
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.records import OUTCOME, RunHeartbeat, read_record
from compactor.core.manifest_key import ManifestKey
from tests.support import building, redriving
from tests.support.harness import DAY, GOOD, DiedError, Harness, dying_at
from tests.support.record_shapes import MODELS
from tests.unit.schema.test_registry import LAYOUT, of, registry

ROOT = Path(__file__).resolve().parents[3]
LATER = {"later": {"unit": "s"}}


def add(store: Any, uri: str, *path: Any) -> None:
    """Add a key, as a newer release would, to a stored record and to a part of it."""
    document = json.loads(store.read(uri))
    part = document
    for each in path:
        part = part[each]
    for changed in (document, part):
        changed.update(LATER)
    store.put(uri, json.dumps(document).encode())


def models_in(kind: Any) -> Iterator[type[BaseModel]]:
    """A model and those inside it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models_in(field.annotation)
    for each in get_args(kind):
        yield from models_in(each)


@pytest.mark.parametrize("kind", MODELS)
def test_every_record_keeps_unknown_keys(kind: str) -> None:
    """So does every part of it: a copy is made of the parsed record."""
    adapter: TypeAdapter[Any] = MODELS[kind]
    found = {*models_in(adapter._type)}
    assert found
    assert {each.__name__ for each in found if each.model_config.get("extra") != "allow"} == set()


def test_the_format_of_a_record_is_not_copied() -> None:
    """It is about the stored bytes: a copy by this release is in the format that this release writes."""
    harness = Harness()
    harness.put_manifest("a.json", b"")
    harness.run_once()
    stored = json.loads(harness.store.read(harness.layout.outcome(harness.dead_letter("a").key)))
    data = json.dumps({**stored, "record_format": 1, "record_release": "0.3.0", **LATER}).encode()
    record = read_record(OUTCOME.validate_json, data, "s3://w/o.json", kind="Outcome", expected="an outcome")
    assert record.model_extra == LATER


def test_the_sealer_keeps_those_of_files() -> None:
    """Pending parts of a newer builder are merged without loss; of the parts themselves nothing is left."""
    harness = building.new_harness()
    for name in "ab":
        building.build(harness, building.put(f"{name}.ndjson"))
    for uri in building.pending(harness):
        add(harness.store, uri, "files", 0)
    [sealed] = building.seal(harness, after_seconds=60).manifests
    stored = json.loads(harness.store.read(harness.layout.manifest(sealed.manifest_id)))
    assert [each["later"] for each in stored["files"]] == [LATER["later"]] * 2
    accepted = json.loads(harness.store.read(harness.layout.accepted(sealed.manifest_id)))
    assert [each["later"] for each in accepted["manifest"]["files"]] == [LATER["later"]] * 2


def test_the_archive_keeps_those_of_manifests() -> None:
    """A manifest whose object is gone is archived from the ledger, as the newer release wrote it there."""
    harness = Harness()
    harness.deliver("a", GOOD)
    uri = harness.layout.manifest("a")
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DECIDED)).run([uri])
    add(harness.store, harness.layout.accepted("a"), "manifest")
    harness.store.delete([uri])
    harness.clock.advance(600)
    harness.run_once()
    [archived] = [info.uri for info in harness.store.list(harness.layout.archive_folder)]
    assert json.loads(harness.store.read(archived))["later"] == LATER["later"]


def test_other_writers_get_nothing_into_the_ledger() -> None:
    """A producer cannot say now what a later release would trust as its own."""
    harness = Harness()
    harness.deliver("a", GOOD)
    add(harness.store, harness.layout.manifest("a"), "files", 0)
    harness.run_once()
    assert b"later" in harness.store.read(harness.layout.archived_manifest(ManifestKey(DAY, "a")))  # its own object
    for info in harness.store.list(harness.layout.state):
        if not info.uri.startswith(harness.layout.archive_folder):
            assert b"later" not in harness.store.read(info.uri), info.uri


def test_a_redrive_keeps_those_of_files() -> None:
    """A dead letter's files go into the new manifest with what the ledger has of them."""
    harness = redriving.new_harness()
    letter = redriving.dead_letter(harness)
    uri = harness.layout.accepted(letter)
    if json.loads(harness.store.read(uri))["manifest"] is None:
        pytest.fail("the manifest of this dead letter is not on record")
    add(harness.store, uri, "manifest", "files", 0)
    [new_id] = redriving.new_ids(redriving.redrive(harness, "manifests", letter))
    assert new_id is not None
    manifest = json.loads(harness.store.read(harness.layout.manifest(new_id)))
    assert manifest["files"][0]["later"] == LATER["later"]


@pytest.mark.parametrize("change", ["grow", "retire"])
def test_the_next_schema_version_keeps_those_of_columns(change: str) -> None:
    """And its own: a version is a copy of the one before, with columns added or retired."""
    store = MemoryStore()
    registry(store).covering(of("a", "b"), "m1")
    add(store, LAYOUT.schema(1), "columns", 0)
    if change == "grow":
        registry(store).covering(of("c"), "m2")
    else:
        registry(store).retire(["b"])
    second = json.loads(store.read(LAYOUT.schema(2)))
    assert (second["later"], second["columns"][0]["later"]) == (LATER["later"],) * 2
    assert second["version"] == 2
    assert "later" not in second["columns"][1]


def test_notices_keep_those_of_what_was_told() -> None:
    """The control plane overwrites its record."""
    store = MemoryStore()
    store.put("/w/told.json", json.dumps({"alarms": {}, **LATER}).encode())
    Notices(notifier=SimpleNamespace(tell=lambda *_: None), store=store, uri="/w/told.json", job_name="j").tell(
        [], {"late": "it is late"}
    )
    assert json.loads(store.read("/w/told.json")) == {"alarms": {"late": "it is late"}, "passing": [], **LATER}
    assert Told(alarms={}).model_extra == {}


def test_commands_print_only_what_their_schemas_have(capsys: pytest.CaptureFixture[str]) -> None:
    """The schemas of --json are closed, also beside a newer release."""
    values = {"run_id": "r", "host": "h", "process_id": 1, "started_at": "2026-01-02T00:00:00Z"}
    beat = RunHeartbeat.model_validate({**values, "heartbeat_at": "2026-01-02T00:00:00Z", **LATER})
    print_json({"running": [beat]})
    [shown] = json.loads(capsys.readouterr().out)["running"]
    assert shown.keys() == RunHeartbeat.model_fields.keys()


OVERWRITES = {
    "control/gathering.py": "two records of the control plane: each says anew what it found",
    "control/notices.py": "a copy of the record with other alarms",
    "engines/columns_file.py": "what the registry adds up to: a cache, which keeps columns that no version has",
    "engines/rows_place.py": "files of rows of its own attempt, which are no records",
    "job/steps/publication.py": "the reason of a dead letter, and a copy of the recorded manifest",
    "upkeep/beside.py": "when something last ended: one time",
    "job/steps/self_test.py": "a sample of its own",
    "ledger/history/closed_dates.py": "what the log of closed dates adds up to: a cache",
    "ledger/history/erasures.py": "what its own erasure did: another process can only have guessed it from commits",
    "ledger/chains/chain.py": "the name of a link at which listings may begin: a cache",
    "ledger/chains/progress_notes.py": "how far jobs are with a topic or stream: written anew after each plan",
    "ledger/heartbeat.py": "a run's own heartbeat, and a request to stop without content",
    "ledger/kinesis/shard_chains.py": "how long a shard has had no further record: what this planner saw itself",
    "ledger/ledger.py": "an open marker without content, a summary and a verified commit of its own work",
    "ledger/table/batches.py": "up to where the batches of the table are finished: a cache",
    "ledger/table/progress.py": "how far a job is with the table: a copy of its own record, said anew each time",
    "ops/canary/checker.py": "a file of its own",
    "ops/table/metadata_eraser.py": "names of files to remove: those that are known and those of this erasure",
    "wiring/compact/folder.py": "settings, which are no record",
    "wiring/compact/schema.py": "a schema file, which is no record",
}
"""The modules that overwrite objects, and why nothing of a newer release is lost by it. All else is created once."""


def test_all_that_is_overwritten_is_known() -> None:
    """A further place that overwrites has to say what becomes of unknown keys."""
    found = set()
    for path in (ROOT / "compactor").rglob("*.py"):
        place = str(path.relative_to(ROOT / "compactor"))
        if place.startswith(("adapters/", "demo/")):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            is_put = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "put"
            if is_put and "store" in ast.unparse(node.func.value):  # type: ignore[attr-defined]
                found.add(place)
    assert found == OVERWRITES.keys()
