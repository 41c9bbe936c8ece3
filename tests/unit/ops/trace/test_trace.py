"""`trace`: every place that a file, a manifest, or a file of output or rejects can be in."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from compactor.core.crash_points import CrashPoint, RedriveCrashPoint
from compactor.core.documents.records import Accepted
from compactor.core.errors import StoreUnavailable, StuckError
from compactor.core.layout import ManifestKey, redriven_id
from compactor.core.rules.next_steps import Cause
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.backlog import read_backlog
from compactor.ledger.ledger import FOLD_AT
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.trace.trace import TraceResult, TraceState
from compactor.sources.claiming import claim_key
from compactor.wiring import finding, operating
from tests.support.fakes import FailingEngine, FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.redriving import LONG, line_limit


@pytest.fixture
def harness() -> Harness:
    return Harness(stream={"max_attempts": 2})


def trace(harness: Harness, uri: str, *, with_claims: bool = False, days: int = 31) -> TraceResult:
    app = harness.app()
    if not with_claims:
        app.claims_if_any = None
    return operating.tracer(app).trace(uri, days=days)


def trace_manifest(harness: Harness, manifest_id: str) -> TraceResult:
    return operating.tracer(harness.app()).trace_manifest(manifest_id)


def redrive(harness: Harness, kind: Kind, *manifest_ids: str) -> None:
    app = harness.app()
    report = operating.redriver(app).redrive(find_redrivable(app.state, Scope(kind, manifest_ids)))
    assert report.redriven


def stopped_at(harness: Harness, point: CrashPoint, *contents: bytes) -> str:
    """A manifest whose driver died at this point; returns the URI of its first file."""

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == point:
            raise DiedError

    with pytest.raises(DiedError):
        harness.runner(on_crash_point=die).run([harness.deliver("m1", *contents)])
    return "/w/raw/m1-0.ndjson"


def dead_letter(harness: Harness) -> str:
    """A manifest m1 that is a dead letter; the URI of its file."""
    uri = stopped_at(harness, CrashPoint.ATTEMPTED, GOOD)
    for _ in range(3):
        engine = FailingEngine(harness.store, ValueError("too much"), {"m1": 99})
        harness.runner(engine=engine).run(harness.waiting())
    return uri


@pytest.mark.parametrize("with_claims", [False, True])
@pytest.mark.parametrize(
    ("point", "state"),
    [
        (None, TraceState.WAITING),
        (CrashPoint.ACCEPTED, TraceState.WAITING),
        (CrashPoint.ATTEMPTED, TraceState.IN_WORK),
        (CrashPoint.VERIFIED, TraceState.IN_WORK),
        (CrashPoint.DECIDED, TraceState.DECIDED),
        (CrashPoint.PUBLISHED, TraceState.DECIDED),
        (CrashPoint.DONE, TraceState.DONE),
        (CrashPoint.CLOSED, TraceState.DONE),
    ],
)
def test_along_the_life(harness: Harness, point: CrashPoint | None, state: TraceState, with_claims: bool) -> None:
    """A file is where its manifest is, found by its claim or by a search; so is the manifest."""
    if point is None:
        harness.deliver("m1", GOOD, FLAWED)
    else:
        stopped_at(harness, point, GOOD, FLAWED)
    file = harness.named("/w/raw/m1-0.ndjson")
    if with_claims:
        harness.claims.claim([claim_key(file)], "m1", now=harness.clock.now(), lease_seconds=1)
    found = trace(harness, file.uri, with_claims=with_claims)
    assert (found.state, found.manifest_id, found.exists) == (state, "m1", True)
    manifest = trace_manifest(harness, "m1")
    assert (manifest.state, manifest.kind, manifest.manifest_uri) == (state, "manifest", found.manifest_uri)
    is_archived = point is CrashPoint.CLOSED
    place = harness.layout.archived_manifest(ManifestKey(DAY, "m1")) if is_archived else harness.layout.manifest("m1")
    assert found.manifest_uri == place


def test_outputs_and_rejects(harness: Harness) -> None:
    """A file that is done names the Parquet files that its rows and its rejects may be in."""
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    commit = harness.commit("m1")
    clean, flawed = trace(harness, "/w/raw/m1-0.ndjson"), trace(harness, "file:///w/raw/m1-1.ndjson")
    assert (clean.outputs, clean.rejects) == ([file.final for file in commit.outputs], [])
    assert (flawed.outputs, flawed.rejects) == (clean.outputs, [file.final for file in commit.rejects])
    assert flawed.report == commit.files[1]
    assert (clean.next_moves, flawed.next_moves) == ([], ["compactor rejects --file file:///w/raw/m1-1.ndjson"])
    assert [(each.line_number, each.reason) for each in flawed.rejected] == [(2, "invalid_json"), (4, "not_an_object")]
    assert clean.rejected == []


def test_unknown(harness: Harness) -> None:
    """A file that no manifest names is unknown, whether it exists or not; the trace says what was searched."""
    harness.file(f"{DAY}-a", GOOD)
    there, gone = trace(harness, f"/w/raw/{DAY}-a"), trace(harness, "/w/raw/b", with_claims=True)
    assert [(each.state, each.exists) for each in (there, gone)] == [
        (TraceState.UNKNOWN, True),
        (TraceState.UNKNOWN, False),
    ]
    assert there.searched == f"the manifests that wait, the ledger of {DAY}"
    assert gone.searched == f"the claims, the manifests that wait, the ledger of {DAY}"
    assert (there.next_moves, gone.next_moves) == (["compactor plan /w/raw"], [])
    assert trace_manifest(harness, "m1").searched == "the ledger in /w/state and /w/manifests/"


def test_claimed(harness: Harness) -> None:
    """A file that is claimed for a manifest which is not written yet, or never will be, says so."""
    file = harness.file("a", GOOD)
    harness.claims.claim([claim_key(file)], "m1", now=harness.clock.now(), lease_seconds=1)
    found = trace(harness, file.uri, with_claims=True)
    assert (found.state, found.manifest_id, found.message) == (TraceState.CLAIMED, "m1", "")
    harness.ledger.accept(Accepted(manifest_id="m1", kind="revoked", date=DAY, accepted_at=harness.clock.now()))
    found = trace(harness, file.uri, with_claims=True)
    assert (found.state, found.message, found.next_moves) == (
        TraceState.CLAIMED,
        "manifest m1 was revoked by its planner; plan again",
        ["compactor plan /w/raw"],
    )


def test_quarantined(harness: Harness) -> None:
    """The trace of a quarantined file says why and what to do, even if the file is gone."""
    uri = harness.deliver("m1", GOOD, GOOD)
    harness.store.delete(["/w/raw/m1-0.ndjson"])
    harness.runner().run([uri])
    found = trace(harness, "/w/raw/m1-0.ndjson")
    assert (found.state, found.exists, found.needs_operator) == (TraceState.QUARANTINED, False, True)
    assert found.message.startswith("missing: ")
    assert [each.cause for each in found.quarantined] == [Cause.MISSING]
    assert found.quarantined == trace_manifest(harness, "m1").quarantined


def test_changed(harness: Harness) -> None:
    """A file that was replaced before it was read is planned again, not redriven."""
    uri = harness.deliver("m1", GOOD, GOOD)
    harness.file("m1-0.ndjson", FLAWED)
    harness.runner().run([uri])
    found = trace(harness, "/w/raw/m1-0.ndjson")
    assert (found.state, found.next_moves) == (TraceState.QUARANTINED, ["compactor plan /w/raw"])


def test_dead_lettered(harness: Harness) -> None:
    """A file of a manifest that is a dead letter is found by its manifest, without claims too."""
    found = trace(harness, dead_letter(harness))
    assert (found.state, found.manifest_id) == (TraceState.DEAD_LETTERED, "m1")
    assert found.message.startswith("retries_exhausted: ")
    assert (found.needs_operator, found.next_moves) == (True, ["compactor redrive manifests --manifest m1"])
    assert found.manifest_uri == harness.layout.failed_manifest("m1")


def test_when_a_manifest_is_tried_again(harness: Harness) -> None:
    """A manifest that failed has the time of its next attempt, and the sum of attempts without records of their own."""
    uri = harness.deliver("m1", GOOD)
    engine = FailingEngine(harness.store, StoreUnavailable("503"))
    for _ in range(FOLD_AT + 1):
        harness.runner(engine=engine).run([uri])
    found = trace_manifest(harness, "m1")
    assert (found.state, found.earlier_attempts + len(found.attempts)) == (TraceState.IN_WORK, FOLD_AT + 1)
    assert found.earlier_attempts == FOLD_AT - 1
    assert found.next_attempt_at is not None
    assert found.next_attempt_at > harness.clock.now()
    harness.runner().run([uri])
    assert trace_manifest(harness, "m1").next_attempt_at is None


def test_attempts(harness: Harness) -> None:
    """All attempts at a manifest are listed with their errors, even after it is done."""
    harness.deliver("m1", GOOD)
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "upload")
    store.unavailable_at(1, "read_range")
    assert harness.runner(store=store).run(harness.waiting()).failures
    harness.run_once()
    first, second = trace_manifest(harness, "m1").attempts
    assert ("the answer to read_range did not come" in first.error, first.passing) == (True, True)
    assert (second.number, second.error) == (2, "")


def test_redriven_letter(harness: Harness) -> None:
    """A file of a redriven dead letter is followed to its new manifest; the old one says what it was redriven as."""
    uri = dead_letter(harness)
    redrive(harness, "manifests")
    found = trace(harness, uri)
    assert (found.state, found.manifest_id, found.redriven_from) == (TraceState.WAITING, "m1-r1", "m1")
    harness.run_once()
    for with_claims in (True, False):
        found = trace(harness, uri, with_claims=with_claims)
        assert (found.state, found.manifest_id, found.needs_operator) == (TraceState.DONE, "m1-r1", False)
    letter = trace_manifest(harness, "m1")
    assert (letter.state, letter.needs_operator, letter.next_moves) == (TraceState.DEAD_LETTERED, False, [])
    assert [(each.manifest_id, each.kind, each.fate) for each in letter.redriven_as] == [
        ("m1-r1", "manifests", "accepted")
    ]


def test_redriven_file(harness: Harness) -> None:
    """A redriven file is followed to the manifest with its rows; the one that quarantined it lists the redrive."""
    harness.deliver("m1", GOOD, FLAWED)
    harness.store.delete(["/w/raw/m1-0.ndjson"])
    harness.run_once()
    harness.file("m1-0.ndjson", GOOD)
    redrive(harness, "files")
    harness.run_once()
    found = trace(harness, "/w/raw/m1-0.ndjson")
    assert (found.state, found.manifest_id, found.redriven_from) == (TraceState.DONE, "m1-r1", "m1")
    assert [each.counts for each in trace_manifest(harness, "m1").redriven_as] == [{"missing": 1}]
    assert trace(harness, "/w/raw/m1-1.ndjson").redriven_as == []


def test_redriven_rejects(harness: Harness) -> None:
    """Rejected lines are followed both ways: from the file to the redrive, and from the new file to its origin."""
    harness.deliver("m1", GOOD, FLAWED + LONG)
    with line_limit(harness, 40):
        harness.run_once()
    assert trace(harness, "/w/raw/m1-1.ndjson").next_moves[1:] == ["compactor redrive rejects --manifest m1"]
    redrive(harness, "rejects")
    found = trace(harness, "/w/raw/m1-1.ndjson")
    assert (found.state, found.manifest_id, found.next_moves[1:]) == (TraceState.DONE, "m1", [])
    assert [(each.manifest_id, each.fate) for each in found.redriven_as] == [("m1-r1", "waiting")]
    assert (found.lines, found.rows, found.rejected_lines) == (5, 2, 3)
    assert trace(harness, "/w/raw/m1-0.ndjson").redriven_as == []
    [lines] = [info.uri for info in harness.store.list("/w/state/redriven/")]
    found = trace(harness, lines)
    assert (found.manifest_id, found.state, found.origin) == ("m1-r1", TraceState.WAITING, "/w/raw/m1-1.ndjson")
    harness.run_once()
    found = trace(harness, "/w/raw/m1-1.ndjson")
    assert (found.lines, found.rows, found.rejected_lines) == (5, 3, 2)
    assert [each.line_number for each in found.rejected] == [2, 4]
    rows = harness.commit("m1").outputs + harness.commit("m1-r1").outputs
    assert found.outputs == [file.final for file in rows]
    again = trace(harness, lines)
    assert (again.lines, again.rows, again.blank_lines) == (1, 1, 0)


def test_rejects_of_other_files(harness: Harness) -> None:
    """A file names only the files of rejects that have some of its own; one that cannot be read may have some."""
    harness.deliver("m1", FLAWED)
    harness.deliver("m2", FLAWED)
    harness.run_once()
    commit = harness.commit("m1")
    damaged = commit.rejects[0].model_copy(update={"final": f"{harness.layout.rejects_folder_of(DAY)}m1-00001.parquet"})
    harness.store.put(damaged.final, b"damaged")
    rejects = [*harness.commit("m2").rejects, *commit.rejects, damaged]
    changed = commit.model_copy(update={"rejects": rejects})
    harness.store.put(harness.layout.outcome(commit.key), changed.model_dump_json().encode())
    found = trace(harness, "/w/raw/m1-0.ndjson")
    assert found.rejects == [commit.rejects[0].final, damaged.final]
    assert [each.line_number for each in found.rejected] == [2, 4]


def test_redrive_that_was_never_written(harness: Harness) -> None:
    """The next action for a redrive without its manifest is to redrive again."""
    uri = dead_letter(harness)

    def die(point: RedriveCrashPoint, _manifest_id: str) -> None:
        if point == RedriveCrashPoint.RECORDED:
            raise DiedError

    app = harness.app(on_crash_point=die)
    with pytest.raises(DiedError):
        operating.redriver(app).redrive(find_redrivable(app.state, Scope("manifests")))
    for found in (trace(harness, uri), trace_manifest(harness, redriven_id("m1", 1))):
        assert (found.state, found.redriven_from) == (TraceState.CLAIMED, "m1")
        assert found.next_moves == ["compactor redrive manifests --manifest m1"]


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_where_output_comes_from(harness: Harness, compression: str) -> None:
    """An output or rejects file names its manifest and inputs, even if the codec in its name is not the current one."""
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    commit = harness.commit("m1")
    output = harness.settings.output.model_copy(update={"compression": compression})
    harness.settings = replace(harness.settings, output=output)
    found = trace(harness, commit.outputs[-1].final)
    assert (found.kind, found.state, found.manifest_id) == ("output", TraceState.DONE, "m1")
    assert [file.uri for file in found.files] == ["/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"]
    found = trace(harness, commit.rejects[0].final)
    assert (found.kind, found.manifest_id, [file.uri for file in found.files]) == (
        "rejects",
        "m1",
        ["/w/raw/m1-1.ndjson"],
    )


@pytest.mark.parametrize("name", ["m1-00099.snappy.parquet", "stranger.parquet", "m2-00000.snappy.parquet"])
def test_output_of_no_commit(harness: Harness, name: str) -> None:
    """A file in the output that no commit names is unknown, and the trace says where one was expected."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    found = trace(harness, harness.layout.output_folder_of(DAY) + name)
    assert (found.state, found.kind) == (TraceState.UNKNOWN, "output")
    assert "expected a commit that names it" in found.searched


def test_objects_of_manifests(harness: Harness) -> None:
    """A manifest is found by its object: watched, whatever its name, archived or failed, and by its reason."""
    data = harness.manifest("m1", [harness.file("a", GOOD)]).to_json()
    uri = harness.put_manifest("anything.json", data)
    assert (trace(harness, uri).manifest_id, trace(harness, uri).exists) == ("m1", True)
    harness.run_once()
    found = trace(harness, harness.layout.archived_manifest(ManifestKey(DAY, "m1")))
    assert (found.kind, found.manifest_id, found.state) == ("manifest", "m1", TraceState.DONE)
    bad = harness.put_manifest("bad.json", b"{")
    harness.run_once()
    for place in (bad, harness.layout.failed_manifest("bad"), harness.layout.failure_reason("bad")):
        found = trace(harness, place)
        assert (found.manifest_id, found.state, found.exists) == ("bad", TraceState.DEAD_LETTERED, place != bad)


def test_other_days_are_searched(harness: Harness) -> None:
    """A file without a claim is found in a manifest of another date, newest first, as far back as asked."""
    for age in range(5):
        day = (date.fromisoformat(DAY) - timedelta(days=age)).isoformat()
        named = harness.file(f"{age}.ndjson", GOOD)
        manifest = harness.manifest(f"m{age}", [named]).model_copy(update={"date": day})
        harness.put_manifest(f"m{age}.json", manifest.to_json())
    harness.run_once()
    assert list(harness.ledger.dates()) == ["2025-12-29", "2025-12-30", "2025-12-31", "2026-01-01", DAY]
    assert [trace(harness, f"/w/raw/{age}.ndjson", days=3).manifest_id for age in range(5)] == [
        "m0",
        "m1",
        "m2",
        "",
        "",
    ]
    assert trace(harness, "/w/raw/4.ndjson").manifest_id == "m4"
    unfound = trace(harness, "/w/raw/4.ndjson", days=3)
    assert unfound.searched == f"the manifests that wait, the ledger of {DAY} and 2 other days, the newest first"


def test_a_record_that_cannot_be_read(harness: Harness) -> None:
    """A damaged record of another manifest does not keep a file from being found."""
    harness.deliver("m1", GOOD)
    harness.deliver("m2", GOOD)
    harness.run_once()
    harness.store.put(harness.layout.outcome(ManifestKey(DAY, "m2")), b"{")
    assert trace(harness, "/w/raw/m1-0.ndjson").state is TraceState.DONE


def test_a_waiting_manifest_that_may_not_be_read(harness: Harness) -> None:
    """It keeps no file from being found, nor the backlog from being read; its own trace says why it waits."""
    denied = FaultyStore(harness.store)
    denied.deny(harness.deliver("m1", GOOD))
    harness.deliver("m2", GOOD)
    app = harness.app(store=denied)
    assert operating.tracer(app).trace("/w/raw/m2-0.ndjson").manifest_id == "m2"
    assert operating.tracer(app).trace("/w/raw/m1-0.ndjson").state is TraceState.UNKNOWN
    found = operating.tracer(app).trace(harness.layout.manifest("m1"))
    assert (found.manifest_id, found.state, found.exists) == ("m1", TraceState.WAITING, True)
    assert found.message == "/w/manifests/m1.json: access denied"
    backlog = operating.status_reader(app).read().backlog
    assert (backlog.manifests, backlog.manifests_read) == (2, 1)
    assert read_backlog(app.state, allowed_prefixes=["/w/raw"]).manifests == 2
    with pytest.raises(StuckError, match=r"m1.json: access denied; expected permission to read each manifest"):
        finding.plan(app, "/w/raw")


def test_another_version(harness: Harness) -> None:
    """Where only an older version of a file was compacted, the trace says so."""
    harness.deliver("m1", GOOD)
    harness.run_once()
    harness.file("m1-0.ndjson", FLAWED)
    found = trace(harness, "/w/raw/m1-0.ndjson")
    assert found.state is TraceState.DONE
    assert found.message == "manifest m1 has compacted version 1; now it is version 11"
