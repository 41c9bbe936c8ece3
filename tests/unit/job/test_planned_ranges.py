"""Manifests of ranges that no plan has written: their offsets would be lost for others, or doubled."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Redrive
from compactor.core.kafka.ranges import KafkaRange
from compactor.core.layout import digest, root_id
from compactor.job import receiving
from compactor.job.receiving import Delivery, Intake
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.kafka.chains import Chains
from compactor.ops.redrive.scan import find_redrivable
from compactor.ops.verify.planned import unwritten
from tests.support.extras import NATIVE
from tests.support.memory_kafka import MemoryKafka, kafka_app
from tests.unit.manifests.test_kafka_planning import LAYOUT, TOPIC, Scene, scene


def delivered(made: Scene, manifest: Manifest) -> Delivery:
    uri = LAYOUT.manifest(manifest.manifest_id)
    made.store.put(uri, manifest.to_json())
    found = Intake(state=made.planner().state, allowed_prefixes=["kafka://main"]).receive(uri)
    assert found is not None
    return found


def reason(made: Scene, manifest: Manifest) -> str:
    """Why a manifest is refused; empty if it is accepted."""
    refusal = delivered(made, manifest).refusal
    return refusal.reason if refusal is not None else ""


def with_range(manifest: Manifest, first: int, end: int, **changed: Any) -> Manifest:
    files = (ManifestFile(uri=str(KafkaRange(TOPIC, 0, first, end)), size_bytes=1, etag=changed.pop("etag", "one")),)
    return manifest.model_copy(update={"files": files, **changed})


@pytest.fixture
def made() -> Scene:
    found, _ = scene(9)
    found.plan()
    return found


def planned(made: Scene) -> Manifest:
    """The one manifest that was planned, with all of its keys."""
    [info] = made.store.list(LAYOUT.manifests_folder)
    return Manifest.model_validate_json(made.store.read(info.uri))


def on_record(made: Scene, manifest: Manifest, number: int = 1) -> Manifest:
    """Put a redrive on record as `compactor redrive` does; returns its manifest."""
    state, root = made.planner().state, root_id(manifest.manifest_id)
    accepted = state.ledger.accepted(root)
    assert accepted is not None
    redrive = Redrive(
        kind="files", source=root, number=number, counts={}, manifest=manifest, run_id="r", redriven_at=made.clock.now()
    )
    assert RedriveLog(state=state).record(accepted.key, redrive)
    return manifest


def test_a_planned_manifest_and_its_redrives(made: Scene) -> None:
    """A redrive may have any part of what its root has, also if it redrives another redrive."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    assert reason(made, on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1"))) == ""
    further = with_range(manifest, 4, 9, manifest_id=f"{manifest.manifest_id}-r2")
    assert reason(made, on_record(made, further, 2)) == ""


def test_ranges_of_others(made: Scene) -> None:
    """Those of another manifest, of another topic id, and further or fewer offsets than the link has."""
    manifest = planned(made)
    assert reason(made, with_range(manifest, 0, 9, manifest_id="other")) == "not_planned"
    assert reason(made, with_range(manifest, 9, 12, manifest_id="further")) == "not_planned"
    assert reason(made, with_range(manifest, 0, 8)) == "not_planned"
    assert reason(made, with_range(manifest, 0, 9, etag="two")) == "not_planned"


def test_redrives_that_are_not_on_record(made: Scene) -> None:
    """Nor one that has other files than its record, or the number of another one."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    redrive = with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1")
    assert reason(made, redrive) == "not_planned"
    assert reason(made, redrive.model_copy(update={"manifest_id": "none-r1"})) == "not_planned"
    on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r2"), 2)
    assert reason(made, with_range(manifest, 4, 9, manifest_id=f"{manifest.manifest_id}-r2")) == "not_planned"
    on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r4"), 3)
    assert reason(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r3")) == "not_planned"


def test_what_is_in_place_of_a_redrive(made: Scene) -> None:
    """It gets another id, so that the manifest that is on record can be written again."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    redrive = on_record(made, with_range(manifest, 3, 9, manifest_id=f"{manifest.manifest_id}-r1"))
    uri = LAYOUT.manifest(redrive.manifest_id)
    made.store.put(uri, b"no manifest")
    found = Intake(state=made.planner().state, allowed_prefixes=["kafka://main"]).receive(uri)
    assert found is not None
    assert found.accepted.manifest_id.startswith(f"{redrive.manifest_id}-dup-")
    [entry] = RedriveLog(state=made.planner().state).entries_about(manifest.manifest_id)
    made.store.delete([uri])
    assert entry.fate == "waiting"
    assert reason(made, redrive) == ""


def test_redrives_of_others(made: Scene) -> None:
    """Of a root that has other ranges, of none, and of ranges that overlap, on record or not."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    redrive = partial(with_range, manifest)
    root = manifest.manifest_id
    assert reason(made, on_record(made, redrive(3, 10, manifest_id=f"{root}-r1"), 1)) == "not_planned"
    assert reason(made, on_record(made, redrive(3, 9, etag="two", manifest_id=f"{root}-r2"), 2)) == "not_planned"
    both = redrive(3, 9, manifest_id=f"{root}-r3")
    both = both.model_copy(update={"files": (*both.files, *redrive(4, 5).files)})
    assert reason(made, on_record(made, both, 3)) == "not_planned"


def test_rows_of_offsets_that_are_there_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` names them, of two manifests and within one."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    app = kafka_app(tmp_path, log)
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    manifest = Manifest.model_validate_json(app.store.read(app.layout.manifest(plan.manifest_id)))
    app.threaded_job(1).run(once=True)
    assert app.verifier().verify_all().discrepancies == []
    monkeypatch.setattr(receiving, "check_planned", lambda *_: None)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3, 9)])
    parts = [with_range(manifest, first, end).files[0] for first, end in ((2, 3), (3, 6), (5, 8))]
    forged = manifest.model_copy(update={"manifest_id": "other", "files": tuple(parts)})
    app.store.put(app.layout.manifest("other"), forged.to_json())
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    found = app.verifier().verify_all().discrepancies
    assert {each.expected for each in found} == {"the rows of each offset once"}
    assert [(each.where, each.found) for each in found] == [
        (f"{TOPIC}/0?from=2&to=3", f"offset 2 compacted by manifest {plan.manifest_id} as well"),
        (f"{TOPIC}/0?from=3&to=6", "offset 5 compacted by manifest other as well"),
    ]


def changed(data: bytes) -> bytes:
    """A planned manifest with other cuts and other columns, and the same offsets."""
    manifest = Manifest.model_validate_json(data)
    files = [
        with_range(manifest, first, first + 1).files[0].model_copy(update={"record_columns": ("offset",)})
        for first in range(3)
    ]
    return manifest.model_copy(update={"files": tuple(files)}).to_json()


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
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    uri = app.layout.manifest(plan.manifest_id)
    data = app.store.read(uri)
    found = LOST[how](data)
    app.store.delete([uri]) if found is None else app.store.put(uri, found)
    if is_taken_in:
        app.threaded_job(1).run(once=True)
    early = kafka_app(tmp_path, log).verifier().verify_all().discrepancies
    assert len(early) == (found is not None and not is_taken_in)
    monkeypatch.setattr(unwritten, "REWRITE_SECONDS", 0.0)
    [told] = kafka_app(tmp_path, log).verifier().verify_all().discrepancies
    assert (told.manifest_id, told.where) == (plan.manifest_id, uri)
    assert f"`compactor plan {TOPIC}` writes it again" in told.expected
    refused = kafka_app(tmp_path, log).redriver().redrive(find_redrivable(app.state, Scope("manifests")))
    assert refused.redriven == []
    partition.append(b'{"id": "3"}')
    for _ in range(2):  # an overwritten one has to be refused first
        app.kafka_planner.plan(TOPIC, max_manifests=9)
        kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    rows = [each for path in (tmp_path / "o").rglob("*.parquet") for each in pq.read_table(path).to_pylist()]
    assert sorted(each["id"] for each in rows) == ["0", "1", "2", "3"]
    assert all("_kafka_offset" not in each for each in rows)
    report = kafka_app(tmp_path, log).verifier(deep=True).verify_all()
    assert report.discrepancies == []
    reasons = {"deleted": [], "overwritten": ["not_json"], "changed": ["not_planned"]}[how]
    assert [each.reason for each in report.dead_letter_manifests] == reasons
    assert not report.open_letters
    again = app.redriver().redrive(find_redrivable(app.state, Scope("manifests")))
    assert again.redriven == []
    assert not [info for info in app.store.list(app.layout.kafka_folder) if "/drafts/" in info.uri]


def test_a_manifest_that_a_planner_has_not_bound(made: Scene) -> None:
    """It is taken in by its links; nothing else is, nor is it written again."""
    manifest = planned(made)
    made.store.delete([LAYOUT.accepted(manifest.manifest_id)])
    assert reason(made, manifest) == ""
    assert made.plan().totals.manifests == []


def test_a_draft_that_cannot_be_read_is_told(made: Scene) -> None:
    """It may be all that is known of what links give to its manifest."""
    manifest = planned(made)
    assert reason(made, manifest) == ""
    state = made.planner().state
    draft = f"{Chains(state).drafts_folder(TOPIC, 'one')}2026-01-01-damaged.json"
    made.store.put(draft, b"{")
    [told] = unwritten.unwritten(state)
    assert (told.manifest_id, told.where) == ("2026-01-01-damaged", draft)
    assert "restore an earlier version" in told.found
    made.store.put(draft, manifest.model_copy(update={"manifest_id": "2026-01-01-damaged"}).to_json())
    assert unwritten.unwritten(state) == []


def later(manifest: Manifest) -> Manifest:
    """The same files, with other bytes."""
    return manifest.model_copy(update={"created_at": manifest.created_at + timedelta(seconds=1)})


def test_a_manifest_that_is_bound_with_other_bytes(made: Scene) -> None:
    """It is written as its record has it, for a job takes in nothing else."""
    manifest = planned(made)
    state = made.planner().state
    accepted = state.ledger.accepted(manifest.manifest_id)
    assert accepted is not None
    data = later(manifest).to_json()
    assert data != manifest.to_json()
    record = accepted.model_copy(update={"digest": digest(data), "manifest": later(manifest)})
    made.store.put(LAYOUT.accepted(manifest.manifest_id), record.model_dump_json().encode())
    made.store.delete([LAYOUT.manifest(manifest.manifest_id)])
    assert len(made.plan().totals.manifests) == 1
    assert made.store.read(LAYOUT.manifest(manifest.manifest_id)) == data
    assert reason(made, later(manifest)) == ""


def test_a_bound_manifest_needs_no_draft(made: Scene) -> None:
    """It is written from its record if the draft cannot be read."""
    manifest = planned(made)
    state, uri = made.planner().state, LAYOUT.manifest(manifest.manifest_id)
    data = made.store.read(uri)
    made.store.delete([uri])
    made.store.put(f"{Chains(state).drafts_folder(TOPIC, 'one')}{manifest.manifest_id}.json", b"{")
    assert made.plan().troubles == []
    assert made.store.read(uri) == data
    assert unwritten.unwritten(state) == []


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
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    uri = app.layout.manifest(plan.manifest_id)
    data = app.store.read(uri)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    part = with_range(Manifest.model_validate_json(data), 0, 2)
    app.store.put(uri, part.to_json() if content == b"part" else content)
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    [told] = kafka_app(tmp_path, log).verifier().verify_all().discrepancies
    assert (told.manifest_id, told.where) == (plan.manifest_id, uri)
    assert f"`compactor plan {TOPIC}` writes it as a redrive of this id" in told.expected
    [again] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    assert again.manifest_id == f"{plan.manifest_id}-r1"
    assert kafka_app(tmp_path, log).verifier().verify_all().discrepancies == []
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    assert rows_of(tmp_path) == ["0", "1", "2", "3", "4", "5"]
    report = kafka_app(tmp_path, log).verifier(deep=True).verify_all()
    assert (report.discrepancies, [each.is_settled for each in report.dead_letter_manifests]) == ([], [True])
    assert app.redriver().redrive(find_redrivable(app.state, Scope("manifests"))).redriven == []
    assert not [info for info in app.store.list(app.layout.kafka_folder) if "/drafts/" in info.uri]


def test_the_id_of_a_planned_manifest_is_taken_by_one_with_files_of_its_own(tmp_path: Path) -> None:
    """These are redriven once, without the offsets that a plan gave to a redrive of the id."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "own.ndjson").write_text('{"id": "own"}\n')
    allowed = {"input": {"allowed_prefixes": ["kafka://main", f"file://{tmp_path}/in/"]}}
    app = kafka_app(tmp_path, log, **allowed)
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    uri = app.layout.manifest(plan.manifest_id)
    manifest = with_range(Manifest.model_validate_json(app.store.read(uri)), 0, 2)
    own = ManifestFile(uri=f"file://{tmp_path}/in/own.ndjson", size_bytes=14)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    app.store.put(uri, manifest.model_copy(update={"files": (*manifest.files, own)}).to_json())
    kafka_app(tmp_path, log, **allowed).threaded_job(1).run(once=True)
    app.kafka_planner.plan(TOPIC, max_manifests=9)
    done = app.redriver().redrive(find_redrivable(app.state, Scope("manifests")))
    assert [each.files for each in done.redriven] == [1]
    assert [(each.uri, "-r1 has what was planned" in each.why) for each in done.refused] == [
        (manifest.files[0].uri, True)
    ]
    kafka_app(tmp_path, log, **allowed).threaded_job(1).run(once=True)
    assert rows_of(tmp_path) == ["0", "1", "2", "own"]
    report = kafka_app(tmp_path, log, **allowed).verifier(deep=True).verify_all()
    assert (report.discrepancies, [each.is_settled for each in report.dead_letter_manifests]) == ([], [True])


def test_a_redrive_of_what_was_planned_is_refused_by_a_job_that_dies(tmp_path: Path) -> None:
    """The next job decides that it is refused, so that it can be redriven, and no plan writes it again for ever."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    app = kafka_app(tmp_path, log)
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    uri = app.layout.manifest(plan.manifest_id)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    app.store.put(uri, b"no manifest")
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    [again] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    refused = Intake(state=app.state, allowed_prefixes=["kafka://main/none"]).receive(
        app.layout.manifest(again.manifest_id)
    )
    assert refused is not None
    assert refused.refusal is not None
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    assert len(app.redriver().redrive(find_redrivable(app.state, Scope("manifests"))).redriven) == 1
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    assert app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests == []
    assert rows_of(tmp_path) == ["0", "1", "2"]
    assert kafka_app(tmp_path, log).verifier(deep=True).verify_all().discrepancies == []


@pytest.mark.parametrize("damage", ["deleted", "unreadable"])
def test_a_redrive_of_what_was_planned_is_gone_or_damaged(tmp_path: Path, damage: str) -> None:
    """`verify` says so, and names all else."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(b'{"id": "0"}')
    app = kafka_app(tmp_path, log)
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    uri = app.layout.manifest(plan.manifest_id)
    app.store.delete([uri, app.layout.accepted(plan.manifest_id)])  # as if its planner had died before it
    app.store.put(uri, b"no manifest")
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    [again] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    holder = app.ledger.accepted(plan.manifest_id)
    assert holder is not None
    if damage == "deleted":
        app.store.delete([app.layout.manifest(again.manifest_id)])
    else:
        app.store.put(app.layout.redrive(holder.key, 1), b"{")
    expected = [each.expected for each in kafka_app(tmp_path, log).verifier().verify_all().discrepancies]
    told = {"deleted": "writes it as a redrive of this id", "unreadable": "records of the manifest that can be read"}
    assert any(told[damage] in each for each in expected)
    app.store.delete([info.uri for info in app.store.list(app.layout.kafka_folder) if "/drafts/" in info.uri])
    found = [each.found for each in kafka_app(tmp_path, log).verifier().verify_all().discrepancies]
    assert "no such manifest" in found


def test_a_refused_manifest_of_an_earlier_release_is_redriven(tmp_path: Path) -> None:
    """Its redrive has what links give to it, and `verify` follows them."""
    NATIVE.need()
    log = MemoryKafka()
    [partition] = log.create(TOPIC, "one", 1)
    partition.append(*[b'{"id": "%d"}' % each for each in range(3)])
    app = kafka_app(tmp_path, log)
    [plan] = app.kafka_planner.plan(TOPIC, max_manifests=9).totals.manifests
    app.store.delete([app.layout.accepted(plan.manifest_id)])  # it did not bind ids
    app.store.delete([info.uri for info in app.store.list(app.layout.kafka_folder) if "/drafts/" in info.uri])
    kafka_app(tmp_path, log, input={"allowed_prefixes": ["kafka://main/none"]}).threaded_job(1).run(once=True)
    told = kafka_app(tmp_path, log).verifier().verify_all().discrepancies
    assert [each.found for each in told] == ["no such manifest"]
    assert len(app.redriver().redrive(find_redrivable(app.state, Scope("manifests"))).redriven) == 1
    assert kafka_app(tmp_path, log).verifier().verify_all().discrepancies == []
    kafka_app(tmp_path, log).threaded_job(1).run(once=True)
    assert rows_of(tmp_path) == ["0", "1", "2"]
    assert kafka_app(tmp_path, log).verifier(deep=True).verify_all().discrepancies == []
