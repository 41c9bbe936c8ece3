"""From announced files to manifests: each file in exactly one."""

import json

import pytest

from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.trace.trace import TraceState
from compactor.sources.claiming import claim_key
from compactor.wiring import finding, operating
from tests.support.building import MIB, build, in_effect, new_harness, pending, places, put, seal
from tests.support.fakes import FaultyStore
from tests.support.harness import FLAWED, GOOD, Harness
from tests.support.memory_store import MemoryClaims
from tests.support.rebuilding import rebuild
from tests.support.recent_commits import recent_commit
from tests.support.redriving import exhaust, redrive
from tests.support.s3_messages import SHAPES, notification, record, wrapped


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def test_full_manifests_at_once_and_the_rest_later(harness: Harness) -> None:
    """Enough files for a manifest are one right away; what is left waits in a part, and is sealed by its age."""
    report = build(harness, *(put(f"{number}.ndjson", 5 * MIB) for number in range(7)))
    assert [each.files for each in report.plans[""].manifests] == [2, 2, 2]
    assert ([each.files for each in report.plans[""].parts], report.failed) == ([1], {})
    early = seal(harness, after_seconds=59)
    assert (early.manifests, early.waiting_parts, early.oldest_seconds) == ([], 1, 59)
    late = seal(harness, after_seconds=1)
    assert (late.sealed_parts, late.waiting_parts, pending(harness)) == (1, 0, [])
    assert set(places(harness).values()) == {1}
    assert len(places(harness)) == 7


def test_one_day_a_manifest(harness: Harness) -> None:
    """Files are grouped by the day in their names, else by that of the event."""
    build(harness, put("2026-01-05-a.ndjson"), put("2026-01-06/b.ndjson"), put("c.ndjson"))
    seal(harness, after_seconds=60)
    assert sorted(manifest.date for manifest in in_effect(harness)) == ["2026-01-02", "2026-01-05", "2026-01-06"]


def test_an_object_larger_than_the_target_is_alone(harness: Harness) -> None:
    """A single large object does not draw small ones into its manifest."""
    report = build(harness, put("small.ndjson", 1), put("large.ndjson", 12 * MIB), put("other.ndjson", 1))
    plan = report.plans[""]
    assert ([each.files for each in plan.manifests], [each.files for each in plan.parts]) == ([1], [1, 1])


def test_manifests_in_whole_output_files(harness: Harness) -> None:
    """Once sizing has learned how much Parquet a byte of input makes, manifests fill whole output files."""
    commit = recent_commit(
        harness.clock.now(),
        decoded_bytes=100 * MIB,
        input_bytes=100 * MIB,
        output_bytes=1600 * MIB,  # so that one output file of 128 MiB comes of 8 MiB
    )
    harness.ledger.remember(commit)
    report = build(harness, *(put(f"{number}.ndjson") for number in range(16)))
    assert [each.files for each in report.plans[""].manifests] == [8, 8]


def test_repeated_events(harness: Harness) -> None:
    """A file that is announced again, in whatever shape, is in one manifest; a new version of it is a new file."""
    shapes = [put("a.ndjson", shape=shape) for shape in SHAPES]
    first = build(harness, *shapes)
    plan = first.plans[""]
    assert (plan.candidates, len(plan.parts), first.failed) == (1, 1, {})
    again = build(harness, *shapes, put("a.ndjson", etag="e2"))
    plan = again.plans[""]
    assert (plan.candidates, plan.planned_before, len(plan.parts), again.failed) == (2, 1, 1, {})
    seal(harness, after_seconds=60)
    assert build(harness, *shapes).plans[""].planned_before == 1
    assert places(harness) == {"s3://lake/raw/a.ndjson#e1": 1, "s3://lake/raw/a.ndjson#e2": 1}


A = "s3://lake/raw/a.ndjson"


def version(etag: str, second: int, *, key: str = "a.ndjson", size: int = 9) -> str:
    return notification("lake", f"raw/{key}", size, etag, time=f"2026-01-02T03:04:{second:02d}.000Z")


def test_versions_of_one_object_are_one_entry(harness: Harness) -> None:
    """A producer that overwrites one object makes one manifest, by whatever calls its versions are announced.

    The entry is that of the version announced last, and every version stays claimed.
    """
    for call in range(3):
        build(harness, *(version(f"e{call}-{number}", 50 - call) for number in range(10)), put(f"{call}.ndjson"))
    [planned] = seal(harness, after_seconds=60).manifests
    [manifest] = in_effect(harness)
    entries = {base_name(file.uri): file for file in manifest.files}
    assert entries.keys() == {"a.ndjson", *(f"{call}.ndjson" for call in range(3))}
    assert (planned.files, entries["0.ndjson"].other_etags, entries["a.ndjson"].etag[:2]) == (4, None, "e0")
    assert set(places(harness).values()) == {1}
    assert len(places(harness)) == 33
    assert build(harness, version("e2-9", 1)).plans[""].planned_before == 1


def test_versions_of_one_object_count_once_for_the_size_of_a_manifest(harness: Harness) -> None:
    """Only one of them is read, so a manifest is not full because of the others."""
    versions = [version(f"e{number}", number, size=4 * MIB) for number in range(9)]
    plan = build(harness, *versions, put("b.ndjson", 6 * MIB)).plans[""]
    assert ([each.files for each in plan.manifests], plan.parts) == ([2], [])


@pytest.mark.parametrize("announced", [("e1", "HERE"), ("HERE", "e2"), ("e1", "e2")], ids=["last", "earlier", "none"])
def test_the_version_that_exists_is_read(harness: Harness, announced: tuple[str, str]) -> None:
    """Of the announced versions of an object, the job reads the one in the store, and counts the others as changed.

    So the event of a version that was never written, or that came late, cannot keep out the lines of another one.
    """
    harness.store.put(A, GOOD)
    there = harness.named(A).etag or ""
    earlier, last = (there if each == "HERE" else each for each in announced)
    build(harness, version(earlier, 1), version(last, 2), version("e0", 0))
    [planned] = seal(harness, after_seconds=60).manifests
    harness.run_once()
    [report] = harness.commit(planned.manifest_id).files
    found = (report.status, report.etag, report.superseded, report.records)
    sums = operating.verifier(harness.app()).verify_all().files_by_status
    if "HERE" not in announced:
        assert (found, sums) == (("changed", "", 2, 0), {"changed": 3})
        return
    assert (found, sums) == (("compacted", there, 2, 2), {"compacted": 1, "changed": 2})
    harness.check_exact([A])
    trace = operating.tracer(harness.app()).trace(A)
    assert (trace.state, trace.message) == (TraceState.DONE, "2 other announced versions of it no longer existed")


def test_every_version_is_known_without_claims() -> None:
    """An object is not planned again in any of its versions while its manifest waits, or is redriven."""
    harness = Harness(root="s3://lake", builder={}, stream={"max_attempts": 2})
    harness.store.put(A, GOOD)
    build(harness, version(harness.named(A).etag or "", 1), version("e2", 2))
    seal(harness, after_seconds=60)
    harness.claims = MemoryClaims()
    assert finding.plan(harness.app(), "s3://lake/raw").planned_before == 1
    exhaust(harness)
    harness.claims = MemoryClaims()
    assert len(redrive(harness, "manifests").redriven) == 1
    assert build(harness, version(harness.named(A).etag or "", 1), version("e2", 2)).plans[""].planned_before == 2
    harness.run_once()
    harness.check_exact([A])


def test_a_rebuild_keeps_the_versions_that_no_longer_existed(harness: Harness) -> None:
    """It rereads only the version that was read, and counts the others as the first commit does."""
    harness.store.put(A, GOOD)
    build(harness, version("e0", 1), version(harness.named(A).etag or "", 2))
    [planned] = seal(harness, after_seconds=60).manifests
    harness.run_once()
    [output] = harness.commit(planned.manifest_id).outputs
    before = harness.verification().files_by_status
    harness.store.delete([output.final])
    assert [each.generation for each in rebuild(harness).rebuilt] == [2]
    [report] = harness.commit(planned.manifest_id).files
    found = harness.verification()
    assert (report.superseded, found.files_by_status, found.discrepancies) == (1, before, [])
    harness.check_exact([A])


@pytest.mark.parametrize("is_claimed", [False, True])
@pytest.mark.parametrize("is_missed", [False, True])
def test_a_dead_letter_is_open_until_all_its_versions_are_settled(*, is_missed: bool, is_claimed: bool) -> None:
    """A redrive drops only the version that another manifest has: the lines of the other one would be lost."""
    harness = Harness(root="s3://lake", builder={}, stream={"max_attempts": 2})
    harness.store.put(A, FLAWED)
    file = harness.named(A)
    if is_claimed:
        harness.claims.claim([claim_key(file)], "m0", now=harness.clock.now(), lease_seconds=1)
    harness.put_manifest("m0.json", harness.manifest("m0", [file]).to_json())
    if is_missed:
        harness.store.put(A, GOOD)
    harness.run_once()
    harness.store.put(A, GOOD)
    there = harness.named(A).etag or ""
    both = file.model_copy(update={"other_etags": (there,)})
    harness.put_manifest("m1.json", harness.manifest("m1", [both]).to_json())
    exhaust(harness)
    [letter] = harness.verification().dead_letter_manifests
    assert (letter.settled_by, letter.is_settled) == ("", False)
    [redriven] = redrive(harness, "manifests").redriven
    harness.run_once()
    [report] = harness.commit(redriven.manifest_id or "").files
    is_dropped = is_claimed or not is_missed
    assert (report.status, report.etag, report.superseded) == ("compacted", there, int(not is_dropped))
    assert not harness.verification().needs_operator


@pytest.mark.parametrize("read", ["last", "earlier", "none"])
def test_a_manifest_settles_all_versions_that_it_names(read: str) -> None:
    """It has the rows of one, or none, and no other one existed any more: no operator is needed."""
    harness = Harness(root="s3://lake", builder={}, stream={"max_attempts": 2})
    harness.store.put(A, GOOD)
    there = harness.named(A).etag or ""
    earlier, last = {"last": ("e1", there), "earlier": (there, "e2"), "none": ("e1", "e2")}[read]
    file = harness.named(A).model_copy(update={"etag": last, "other_etags": (earlier,)})
    harness.put_manifest("m0.json", harness.manifest("m0", [file]).to_json())
    harness.run_once()
    build(harness, version(earlier, 1), version(last, 2))
    seal(harness, after_seconds=60)
    exhaust(harness)
    [letter] = harness.verification().dead_letter_manifests
    assert letter.settled_by == "m0"


NOT_DATA = {
    "empty": put("a.ndjson", 0),
    "folder_marker": put("folder/", 0),
    "job_marker": put("out/_SUCCESS", 7),
    "outside_allowed_prefixes": notification("elsewhere", "a.ndjson", 1, "e"),
    "bad_name": put("a/../../b.ndjson"),
    "test_event": wrapped(json.dumps({"Event": "s3:TestEvent"})),
    "not_created": json.dumps({"Records": [{**record("lake", "raw/a", 1, "e"), "eventName": "ObjectRemoved:Delete"}]}),
}


@pytest.mark.parametrize(("reason", "body"), NOT_DATA.items(), ids=NOT_DATA.keys())
def test_what_is_no_data_is_skipped_by_reason(harness: Harness, reason: str, body: str) -> None:
    """An object that is no input is counted with its reason, its message is done with, and nothing is claimed."""
    report = build(harness, body)
    plan = report.plans[""]
    assert (report.skipped + plan.skipped, report.failed, plan.candidates) == ({reason: 1}, {}, 0)
    assert pending(harness) == []


def test_plan_leaves_announced_files_alone(harness: Harness) -> None:
    """A listing finds nothing to plan in what was announced: pending, sealed, or in a manifest."""
    uris = [f"s3://lake/raw/{number}.ndjson" for number in range(3)]
    for uri in uris:
        harness.store.put(uri, b"x")
    etags = {info.uri: info.etag for info in harness.store.list("s3://lake/raw/")}
    for uri in uris[:2]:
        build(harness, put(base_name(uri), 1, etags[uri]))
        seal(harness, after_seconds=60 if uri == uris[0] else 0)
    app = harness.app()
    plan = finding.plan(app, "s3://lake/raw")
    assert (plan.files, plan.planned_before) == (1, 2)
    written = Manifest.model_validate_json(harness.store.read(harness.layout.manifest(plan.manifests[0].manifest_id)))
    assert [file.uri for file in written.files] == uris[2:]


def test_trace_and_redrive_follow_parts(harness: Harness) -> None:
    """An announced file is found while it waits and once it is sealed; once quarantined, it can be redriven."""
    uris = [f"s3://lake/raw/{name}.ndjson" for name in "ab"]
    for uri in uris:
        harness.store.put(uri, b'{"a": 1}\n')
    for info in list(harness.store.list("s3://lake/raw/")):
        build(harness, put(base_name(info.uri), info.size_bytes, info.etag))
    waiting = operating.tracer(harness.app()).trace(uris[0])
    assert (waiting.state, waiting.manifest_uri in pending(harness)) == (TraceState.PENDING, True)
    [manifest] = seal(harness, after_seconds=60).manifests
    assert operating.tracer(harness.app()).trace(uris[0]).manifest_id == manifest.manifest_id
    assert operating.tracer(harness.app()).trace_manifest(waiting.manifest_id).manifest_id == manifest.manifest_id
    closed = FaultyStore(harness.store)
    closed.deny(uris[0])
    harness.run_once(store=closed)
    assert operating.tracer(harness.app()).trace(uris[0]).state is TraceState.QUARANTINED
    app = harness.app()
    report = operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")))
    assert report.refused == ()
    harness.run_once()
    harness.check_exact(uris)
    assert operating.tracer(harness.app()).trace(uris[0]).state is TraceState.DONE
