"""Manifests of landed records that landing has not written: their records would be lost for others, or doubled."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.core.documents.landing import LandingDraft
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Redrive
from compactor.core.layout import digest, root_id
from compactor.job.receiving import Delivery, Intake
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.landing.chains import LogChains
from compactor.ops.redrive.redrivable import Scope, find_redrivable
from compactor.ops.verify import landed
from compactor.wiring import operating, streaming
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app
from tests.unit.sources.test_topic_landing import LAYOUT, TOPIC, Scene


def delivered(made: Scene, manifest: Manifest) -> Delivery:
    uri = LAYOUT.manifest(manifest.manifest_id)
    made.store.put(uri, manifest.to_json())
    found = Intake(state=made.state(), allowed_prefixes=["kafka://main"]).receive(uri)
    assert found is not None
    return found


def reason(made: Scene, manifest: Manifest) -> str:
    """Why a manifest is refused; empty if it is accepted."""
    refusal = delivered(made, manifest).refusal
    return refusal.reason if refusal is not None else ""


def part_of(manifest: Manifest, files: slice = slice(None), **changed: Any) -> Manifest:
    """A manifest with some of the files of another one."""
    return manifest.model_copy(update={"files": manifest.files[files], **changed})


@pytest.fixture
def made() -> Scene:
    found = Scene()
    found.target_bytes = 10_000
    found.put(9)
    found.plan()
    return found


def planned(made: Scene) -> Manifest:
    """The one manifest that was planned, with all of its keys."""
    [info] = made.store.list(LAYOUT.manifests_folder)
    return Manifest.model_validate_json(made.store.read(info.uri))


def on_record(made: Scene, manifest: Manifest, number: int = 1) -> Manifest:
    """Put a redrive on record as `compactor redrive` does; returns its manifest."""
    state, root = made.state(), root_id(manifest.manifest_id)
    accepted = state.ledger.accepted(root)
    assert accepted is not None
    redrive = Redrive(
        kind="files", source=root, number=number, counts={}, manifest=manifest, run_id="r", redriven_at=made.clock.now()
    )
    assert RedriveLog(state=state).record(accepted.key, redrive)
    return manifest


def test_a_landed_manifest_and_its_redrives(made: Scene) -> None:
    """A redrive may have any part of what its root has, also if it redrives another redrive."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    assert reason(made, on_record(made, part_of(manifest, slice(1), manifest_id=f"{manifest.manifest_id}-r1"))) == ""
    further = part_of(manifest, slice(1, 3), manifest_id=f"{manifest.manifest_id}-r2")
    assert reason(made, on_record(made, further, 2)) == ""


def test_objects_and_gaps_of_others(made: Scene) -> None:
    """Those of another manifest, in another version, and a gap that no link has."""
    manifest = planned(made)
    assert reason(made, part_of(manifest, manifest_id="other")) == "outside_allowed_prefixes"
    [first, *others] = manifest.files
    for changed in (
        first.model_copy(update={"etag": "other"}),
        ManifestFile(uri=f"{TOPIC}/0?from=0&to=9", size_bytes=0, etag="one"),
    ):
        assert reason(made, manifest.model_copy(update={"files": (changed, *others)})) == "not_planned"


def test_redrives_that_are_not_on_record(made: Scene) -> None:
    """Nor one that has other files than its record, or the number of another one."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    root = manifest.manifest_id
    redrive = part_of(manifest, slice(1), manifest_id=f"{root}-r1")
    assert reason(made, redrive) == "not_planned"
    on_record(made, part_of(manifest, slice(1), manifest_id=f"{root}-r2"), 2)
    assert reason(made, part_of(manifest, slice(1, 2), manifest_id=f"{root}-r2")) == "not_planned"
    on_record(made, part_of(manifest, slice(1), manifest_id=f"{root}-r4"), 3)
    assert reason(made, part_of(manifest, slice(1), manifest_id=f"{root}-r3")) == "not_planned"


def test_what_is_in_place_of_a_redrive(made: Scene) -> None:
    """It gets another id, so that the manifest that is on record can be written again."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    redrive = on_record(made, part_of(manifest, slice(1), manifest_id=f"{manifest.manifest_id}-r1"))
    uri = LAYOUT.manifest(redrive.manifest_id)
    made.store.put(uri, b"no manifest")
    found = Intake(state=made.state(), allowed_prefixes=["kafka://main"]).receive(uri)
    assert found is not None
    assert found.accepted.manifest_id.startswith(f"{redrive.manifest_id}-dup-")
    [entry] = RedriveLog(state=made.state()).entries_about(manifest.manifest_id)
    made.store.delete([uri])
    assert entry.fate == "waiting"
    assert reason(made, redrive) == ""


def changed(data: bytes) -> bytes:
    """A landed manifest with the same files, and other bytes."""
    return later(Manifest.model_validate_json(data)).to_json()


LOST = {"deleted": lambda _: None, "overwritten": lambda _: b"no manifest", "changed": changed}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("is_taken_in", [False, True])
def test_a_planned_manifest_that_is_lost(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, *, is_taken_in: bool
) -> None:
    """`verify` says what to do, the next plan writes it again, and its rows are there once.

    One that is just absent may be that of a planner that has not come so far: it is told if it stays so.
    """
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    app = kafka_app(tmp_path, log)
    [plan] = streaming.lander(app, "kafka").land(TOPIC, max_manifests=9).manifests
    uri = app.layout.manifest(plan.manifest_id)
    data = app.store.read(uri)
    found = LOST[how](data)
    app.store.delete([uri]) if found is None else app.store.put(uri, found)
    if is_taken_in:
        streaming.threaded_job(app, 1).run(once=True)
    early = operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies
    assert len(early) == (found is not None and not is_taken_in)
    monkeypatch.setattr(landed, "REWRITE_SECONDS", 0.0)
    [told] = operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies
    assert (told.manifest_id, told.where) == (plan.manifest_id, uri)
    assert f"`compactor plan {TOPIC}` writes it again" in told.expected
    refused = operating.redriver(kafka_app(tmp_path, log)).redrive(find_redrivable(app.state, Scope("manifests")))
    assert refused.redriven == ()
    partition.append(b'{"id": "3"}')
    for _ in range(2):  # an overwritten one has to be refused first
        streaming.lander(app, "kafka").land(TOPIC, max_manifests=9)
        streaming.threaded_job(kafka_app(tmp_path, log), 1).run(once=True)
    streaming.lander(app, "kafka").land(TOPIC, max_manifests=9)
    rows = [each for path in (tmp_path / "o").rglob("*.parquet") for each in pq.read_table(path).to_pylist()]
    assert sorted(each["id"] for each in rows) == ["0", "1", "2", "3"]
    report = operating.verifier(kafka_app(tmp_path, log), deep=True).verify_all()
    assert report.discrepancies == []
    reasons = {"deleted": [], "overwritten": ["not_json"], "changed": ["not_planned"]}[how]
    assert [each.reason for each in report.dead_letter_manifests] == reasons
    assert not report.open_letters
    again = operating.redriver(app).redrive(find_redrivable(app.state, Scope("manifests")))
    assert again.redriven == ()
    assert not [info for info in app.store.list(app.layout.logs_folder) if "/drafts/" in info.uri]


def test_a_manifest_that_a_planner_has_not_bound(made: Scene) -> None:
    """It is taken in by its links; nothing else is, nor is it written again."""
    manifest = planned(made)
    made.store.delete([LAYOUT.accepted(manifest.manifest_id)])
    assert reason(made, manifest) == ""
    assert made.plan().manifests == []


def test_a_draft_that_cannot_be_read_is_told(made: Scene) -> None:
    """It may be all that is known of what links give to its manifest."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    state = made.state()
    draft = f"{LogChains(state).drafts_folder(TOPIC, 'one')}2026-01-01-damaged.json"
    made.store.put(draft, b"{")
    [told] = landed.unwritten(state)
    assert (told.manifest_id, told.where) == ("2026-01-01-damaged", draft)
    assert "restore an earlier version" in told.found
    found = LandingDraft(manifest=manifest.model_copy(update={"manifest_id": "2026-01-01-damaged"}), links=())
    made.store.put(draft, found.to_json())
    assert landed.unwritten(state) == []


def later(manifest: Manifest) -> Manifest:
    """The same files, with other bytes."""
    return manifest.model_copy(update={"created_at": manifest.created_at + timedelta(seconds=1)})


def test_a_manifest_that_is_bound_with_other_bytes(made: Scene) -> None:
    """It is written as its record has it, for a job takes in nothing else."""
    manifest = planned(made)
    state = made.state()
    accepted = state.ledger.accepted(manifest.manifest_id)
    assert accepted is not None
    data = later(manifest).to_json()
    assert data != manifest.to_json()
    record = accepted.model_copy(update={"digest": digest(data), "manifest": later(manifest)})
    made.store.put(LAYOUT.accepted(manifest.manifest_id), record.model_dump_json().encode())
    made.store.delete([LAYOUT.manifest(manifest.manifest_id)])
    assert len(made.plan().manifests) == 1
    assert made.store.read(LAYOUT.manifest(manifest.manifest_id)) == data
    assert reason(made, later(manifest)) == ""


def test_a_bound_manifest_needs_no_draft(made: Scene) -> None:
    """It is written from its record if the draft cannot be read."""
    manifest = planned(made)
    state, uri = made.state(), LAYOUT.manifest(manifest.manifest_id)
    data = made.store.read(uri)
    made.store.delete([uri])
    made.store.put(f"{LogChains(state).drafts_folder(TOPIC, 'one')}{manifest.manifest_id}.json", b"{")
    assert made.plan().troubles == []
    assert made.store.read(uri) == data
    assert landed.unwritten(state) == []


def rows_of(root: Path) -> list[str]:
    return sorted(each["id"] for path in (root / "o").rglob("*.parquet") for each in pq.read_table(path).to_pylist())


@pytest.mark.parametrize("content", [b"no manifest", b"part"])
def test_the_id_of_a_planned_manifest_is_taken(tmp_path: Path, content: bytes) -> None:
    """Something was refused under its name before its planner bound the id: a redrive of it has the offsets."""
    NATIVE.need()
    log = MemoryKafka()
    partitions = log.create(TOPIC, "one", 2)
    for number, partition in enumerate(partitions):
        partition.append(*[b'{"id": "%d"}' % each for each in range(3 * number, 3 * number + 3)])
    app = kafka_app(tmp_path, log)
    [plan] = streaming.lander(app, "kafka").land(TOPIC, max_manifests=9).manifests
    uri = app.layout.manifest(plan.manifest_id)
    data = app.store.read(uri)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    part = part_of(Manifest.model_validate_json(data), slice(1))
    app.store.put(uri, part.to_json() if content == b"part" else content)
    streaming.threaded_job(kafka_app(tmp_path, log), 1).run(once=True)
    told = operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies
    assert {each.manifest_id for each in told} == {plan.manifest_id}
    assert any(f"`compactor plan {TOPIC}` writes it as a redrive of this id" in each.expected for each in told) or (
        content == b"part"
    )
    [again] = streaming.lander(app, "kafka").land(TOPIC, max_manifests=9).manifests
    assert again.manifest_id == f"{plan.manifest_id}-r1"
    assert operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies == []
    streaming.threaded_job(kafka_app(tmp_path, log), 1).run(once=True)
    streaming.lander(app, "kafka").land(TOPIC, max_manifests=9)
    assert rows_of(tmp_path) == ["0", "1", "2", "3", "4", "5"]
    report = operating.verifier(kafka_app(tmp_path, log), deep=True).verify_all()
    assert report.discrepancies == []
    assert all(each.is_settled for each in report.dead_letter_manifests)
    assert operating.redriver(app).redrive(find_redrivable(app.state, Scope("manifests"))).redriven == ()
    assert not [info for info in app.store.list(app.layout.logs_folder) if "/drafts/" in info.uri]


@pytest.mark.parametrize("damage", ["deleted", "unreadable"])
def test_a_redrive_of_what_was_planned_is_gone_or_damaged(tmp_path: Path, damage: str) -> None:
    """`verify` says so, and names all else."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "0"}')
    app = kafka_app(tmp_path, log)
    [plan] = streaming.lander(app, "kafka").land(TOPIC, max_manifests=9).manifests
    uri = app.layout.manifest(plan.manifest_id)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    app.store.put(uri, b"no manifest")
    streaming.threaded_job(kafka_app(tmp_path, log), 1).run(once=True)
    [again] = streaming.lander(app, "kafka").land(TOPIC, max_manifests=9).manifests
    holder = app.ledger.accepted(plan.manifest_id)
    assert holder is not None
    if damage == "deleted":
        app.store.delete([app.layout.manifest(again.manifest_id)])
    else:
        app.store.put(app.layout.redrive(holder.key, 1), b"{")
    expected = [each.expected for each in operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies]
    told = {"deleted": "writes it as a redrive of this id", "unreadable": "records of the manifest that can be read"}
    assert any(told[damage] in each for each in expected)
    app.store.delete([info.uri for info in app.store.list(app.layout.logs_folder) if "/drafts/" in info.uri])
    found = [each.found for each in operating.verifier(kafka_app(tmp_path, log)).verify_all().discrepancies]
    assert "no such manifest" in found
