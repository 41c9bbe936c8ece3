"""`trace`: every place that a file, a manifest, or a file of output or rejects can be in."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from compactor.core.crash_points import RedriveStep, Step
from compactor.core.layout import redriven_id
from compactor.core.records import Accepted
from compactor.manifests.claiming import claim_key
from compactor.ops.redrive.selection import Kind, Scope
from compactor.ops.trace.trace import Trace, Whereabouts
from tests.support import fakes as twins
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, World


@pytest.fixture
def world() -> World:
    return World(stream={"max_attempts": 1})


def trace(world: World, uri: str, *, with_claims: bool = False, days: int = 31) -> Trace:
    app = world.app()
    if not with_claims:
        app.claims_if_any = None
    return app.tracer.trace(uri, days=days)


def trace_manifest(world: World, manifest_id: str) -> Trace:
    return world.app().tracer.trace_manifest(manifest_id)


def redrive(world: World, kind: Kind, *manifest_ids: str) -> None:
    app = world.app()
    report = app.redriver().redrive(app.surveyor.survey(Scope(kind, manifest_ids)))
    assert report.redriven


def stopped_at(world: World, step: Step, *contents: bytes) -> str:
    """A manifest whose driver died at a step; the URI of its first file."""

    def die(found: Step, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    with pytest.raises(DiedError):
        world.runner(on_step=die).run([world.deliver("m1", *contents)])
    return "/w/raw/m1-0.ndjson"


def dead_letter(world: World) -> str:
    """A manifest m1 that is a dead letter; the URI of its file."""
    uri = stopped_at(world, Step.ATTEMPTED, GOOD)
    world.run_once()
    return uri


@pytest.mark.parametrize("with_claims", [False, True])
@pytest.mark.parametrize(
    ("step", "whereabouts"),
    [
        (None, Whereabouts.WAITING),
        (Step.ACCEPTED, Whereabouts.WAITING),
        (Step.ATTEMPTED, Whereabouts.IN_WORK),
        (Step.VERIFIED, Whereabouts.IN_WORK),
        (Step.DECIDED, Whereabouts.DECIDED),
        (Step.PUBLISHED, Whereabouts.DECIDED),
        (Step.DONE, Whereabouts.DONE),
        (Step.CLOSED, Whereabouts.DONE),
    ],
)
def test_along_the_life(world: World, step: Step | None, whereabouts: Whereabouts, with_claims: bool) -> None:
    """A file is where its manifest is, found by its claim or, without claims, by looking; so is the manifest."""
    if step is None:
        world.deliver("m1", GOOD, FLAWED)
    else:
        stopped_at(world, step, GOOD, FLAWED)
    file = world.named("/w/raw/m1-0.ndjson")
    if with_claims:
        world.claims.claim([claim_key(file)], "m1", now=world.clock.now(), lease_seconds=1)
    found = trace(world, file.uri, with_claims=with_claims)
    assert (found.whereabouts, found.manifest_id, found.exists) == (whereabouts, "m1", True)
    manifest = trace_manifest(world, "m1")
    assert (manifest.whereabouts, manifest.kind, manifest.manifest_uri) == (whereabouts, "manifest", found.manifest_uri)
    is_archived = step is Step.CLOSED
    place = world.layout.archived_manifest(DAY, "m1") if is_archived else world.layout.manifest("m1")
    assert found.manifest_uri == place


def test_outputs_and_rejects(world: World) -> None:
    """A file that is done names the Parquet files that its rows and its rejects may be in."""
    world.deliver("m1", GOOD, FLAWED)
    world.run_once()
    commit = world.commit("m1")
    clean, flawed = trace(world, "/w/raw/m1-0.ndjson"), trace(world, "file:///w/raw/m1-1.ndjson")
    assert (clean.outputs, clean.rejects) == ([file.final for file in commit.outputs], [])
    assert (flawed.outputs, flawed.rejects) == (clean.outputs, [file.final for file in commit.rejects])
    assert flawed.report == commit.files[1]
    assert (clean.next_moves, flawed.next_moves) == ([], ["compactor redrive rejects m1"])


def test_unknown(world: World) -> None:
    """A file that no manifest names is unknown, whether it exists or not, and tells what was searched."""
    world.file(f"{DAY}-a", GOOD)
    there, gone = trace(world, f"/w/raw/{DAY}-a"), trace(world, "/w/raw/b", with_claims=True)
    assert [(each.whereabouts, each.exists) for each in (there, gone)] == [
        (Whereabouts.UNKNOWN, True),
        (Whereabouts.UNKNOWN, False),
    ]
    assert there.searched == f"the manifests that wait, the ledger of {DAY}"
    assert gone.searched == f"the claims, the manifests that wait, the ledger of {DAY}"
    assert (there.next_moves, gone.next_moves) == (["compactor plan /w/raw"], [])
    assert trace_manifest(world, "m1").searched == "the ledger in /w/state and /w/manifests/"


def test_claimed(world: World) -> None:
    """A file that is claimed for a manifest which is not written yet, or never will be, says so."""
    file = world.file("a", GOOD)
    world.claims.claim([claim_key(file)], "m1", now=world.clock.now(), lease_seconds=1)
    found = trace(world, file.uri, with_claims=True)
    assert (found.whereabouts, found.manifest_id, found.message) == (Whereabouts.CLAIMED, "m1", "")
    world.ledger.accept(Accepted(manifest_id="m1", kind="void", date=DAY, accepted_at=world.clock.now()))
    found = trace(world, file.uri, with_claims=True)
    assert (found.whereabouts, found.message, found.next_moves) == (
        Whereabouts.CLAIMED,
        "manifest m1 was given up by its planner; plan again",
        ["compactor plan /w/raw"],
    )


def test_set_aside(world: World) -> None:
    """A file that was set aside alone tells why and what to do, also when it is gone."""
    uri = world.deliver("m1", GOOD, GOOD)
    world.store.delete(["/w/raw/m1-0.ndjson"])
    world.runner().run([uri])
    found = trace(world, "/w/raw/m1-0.ndjson")
    assert (found.whereabouts, found.exists, found.needs_operator) == (Whereabouts.SET_ASIDE, False, True)
    assert found.message.startswith("missing: ")
    assert found.next_moves == trace_manifest(world, "m1").next_moves == ["compactor redrive files m1"]


def test_changed(world: World) -> None:
    """A file that was replaced before it was read is planned again, not redriven."""
    uri = world.deliver("m1", GOOD, GOOD)
    world.file("m1-0.ndjson", FLAWED)
    world.runner().run([uri])
    found = trace(world, "/w/raw/m1-0.ndjson")
    assert (found.whereabouts, found.next_moves) == (Whereabouts.SET_ASIDE, ["compactor plan /w/raw"])


def test_dead_lettered(world: World) -> None:
    """A file of a manifest that is a dead letter is found by its manifest, without claims too."""
    found = trace(world, dead_letter(world))
    assert (found.whereabouts, found.manifest_id) == (Whereabouts.DEAD_LETTERED, "m1")
    assert found.message.startswith("retries_exhausted: ")
    assert (found.needs_operator, found.next_moves) == (True, ["compactor redrive manifests m1"])
    assert found.manifest_uri == world.layout.failed_manifest("m1")


def test_attempts(world: World) -> None:
    """All attempts at a manifest are told with their errors, also after it came to an end."""
    world.deliver("m1", GOOD)
    store = twins.FaultyStore(world.store)
    store.unavailable_at(1, "upload")
    store.unavailable_at(1, "read_range")
    assert world.runner(store=store).run(world.waiting()).failures
    world.run_once()
    first, second = trace_manifest(world, "m1").attempts
    assert ("the answer to read_range did not come" in first.error, first.passing) == (True, True)
    assert (second.number, second.error) == (2, "")


def test_redriven_letter(world: World) -> None:
    """A file of a redriven dead letter is followed to its new manifest; the old one says what it was redriven as."""
    uri = dead_letter(world)
    redrive(world, "manifests")
    found = trace(world, uri)
    assert (found.whereabouts, found.manifest_id, found.redriven_from) == (Whereabouts.WAITING, "m1-r1", "m1")
    world.run_once()
    for with_claims in (True, False):
        found = trace(world, uri, with_claims=with_claims)
        assert (found.whereabouts, found.manifest_id, found.needs_operator) == (Whereabouts.DONE, "m1-r1", False)
    letter = trace_manifest(world, "m1")
    assert (letter.whereabouts, letter.needs_operator, letter.next_moves) == (Whereabouts.DEAD_LETTERED, False, [])
    assert [(each.manifest_id, each.kind, each.fate) for each in letter.redriven_as] == [
        ("m1-r1", "manifests", "accepted")
    ]


def test_redriven_file(world: World) -> None:
    """A redriven file is followed to the manifest that has its rows; the manifest it was set aside in says so."""
    world.deliver("m1", GOOD, FLAWED)
    world.store.delete(["/w/raw/m1-0.ndjson"])
    world.run_once()
    world.file("m1-0.ndjson", GOOD)
    redrive(world, "files")
    world.run_once()
    found = trace(world, "/w/raw/m1-0.ndjson")
    assert (found.whereabouts, found.manifest_id, found.redriven_from) == (Whereabouts.DONE, "m1-r1", "m1")
    assert [each.counts for each in trace_manifest(world, "m1").redriven_as] == [{"missing": 1}]
    assert trace(world, "/w/raw/m1-1.ndjson").redriven_as == []


def test_redriven_rejects(world: World) -> None:
    """Rejected lines are followed both ways: from the file to the redrive, and from the new file to its origin."""
    world.deliver("m1", GOOD, FLAWED)
    world.run_once()
    redrive(world, "rejects")
    found = trace(world, "/w/raw/m1-1.ndjson")
    assert (found.whereabouts, found.manifest_id, found.next_moves) == (Whereabouts.DONE, "m1", [])
    assert [(each.manifest_id, each.fate) for each in found.redriven_as] == [("m1-r1", "waiting")]
    assert trace(world, "/w/raw/m1-0.ndjson").redriven_as == []
    [lines] = [info.uri for info in world.store.list("/w/state/redriven/")]
    found = trace(world, lines)
    assert (found.manifest_id, found.whereabouts, found.origin) == ("m1-r1", Whereabouts.WAITING, "/w/raw/m1-1.ndjson")


def test_redrive_that_was_never_written(world: World) -> None:
    """A redrive whose manifest is missing tells how to write it."""
    uri = dead_letter(world)
    app = world.app()

    def die(step: RedriveStep, _manifest_id: str) -> None:
        if step == RedriveStep.RECORDED:
            raise DiedError

    with pytest.raises(DiedError):
        app.redriver(on_step=die).redrive(app.surveyor.survey(Scope("manifests")))
    for found in (trace(world, uri), trace_manifest(world, redriven_id("m1", 1))):
        assert (found.whereabouts, found.redriven_from) == (Whereabouts.CLAIMED, "m1")
        assert found.next_moves == ["compactor redrive manifests m1"]


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_where_output_comes_from(world: World, compression: str) -> None:
    """An output or rejects file names its manifest and inputs, also when the codec in its name is not today's."""
    world.deliver("m1", GOOD, FLAWED)
    world.run_once()
    commit = world.commit("m1")
    output = world.settings.output.model_copy(update={"compression": compression})
    world.settings = replace(world.settings, output=output)
    found = trace(world, commit.outputs[-1].final)
    assert (found.kind, found.whereabouts, found.manifest_id) == ("output", Whereabouts.DONE, "m1")
    assert [file.uri for file in found.files] == ["/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"]
    found = trace(world, commit.rejects[0].final)
    assert (found.kind, found.manifest_id, [file.uri for file in found.files]) == (
        "rejects",
        "m1",
        ["/w/raw/m1-1.ndjson"],
    )


@pytest.mark.parametrize("name", ["m1-00099.snappy.parquet", "stranger.parquet", "m2-00000.snappy.parquet"])
def test_output_of_nobody(world: World, name: str) -> None:
    """A file in the output that no commit names is unknown, and it says where one was expected."""
    world.deliver("m1", GOOD)
    world.run_once()
    found = trace(world, world.layout.output_day(DAY) + name)
    assert (found.whereabouts, found.kind) == (Whereabouts.UNKNOWN, "output")
    assert "expected a commit that names it" in found.searched


def test_objects_of_manifests(world: World) -> None:
    """A manifest is found by its object: watched, whatever its name, archived or failed, and by its reason."""
    data = world.manifest("m1", [world.file("a", GOOD)]).to_json()
    uri = world.put_manifest("anything.json", data)
    assert (trace(world, uri).manifest_id, trace(world, uri).exists) == ("m1", True)
    world.run_once()
    found = trace(world, world.layout.archived_manifest(DAY, "m1"))
    assert (found.kind, found.manifest_id, found.whereabouts) == ("manifest", "m1", Whereabouts.DONE)
    bad = world.put_manifest("bad.json", b"{")
    world.run_once()
    for place in (bad, world.layout.failed_manifest("bad"), world.layout.failure_reason("bad")):
        found = trace(world, place)
        assert (found.manifest_id, found.whereabouts, found.exists) == ("bad", Whereabouts.DEAD_LETTERED, place != bad)


def test_other_days_are_searched(world: World) -> None:
    """A file without claim is found in a manifest of another day, the newest first, as far back as was asked."""
    for age in range(5):
        day = (date.fromisoformat(DAY) - timedelta(days=age)).isoformat()
        named = world.file(f"{age}.ndjson", GOOD)
        manifest = world.manifest(f"m{age}", [named]).model_copy(update={"date": day})
        world.put_manifest(f"m{age}.json", manifest.to_json())
    world.run_once()
    assert list(world.ledger.days()) == ["2025-12-29", "2025-12-30", "2025-12-31", "2026-01-01", DAY]
    assert [trace(world, f"/w/raw/{age}.ndjson", days=3).manifest_id for age in range(5)] == ["m0", "m1", "m2", "", ""]
    assert trace(world, "/w/raw/4.ndjson").manifest_id == "m4"
    unfound = trace(world, "/w/raw/4.ndjson", days=3)
    assert unfound.searched == f"the manifests that wait, the ledger of {DAY} and 2 other days, the newest first"


def test_a_record_that_cannot_be_read(world: World) -> None:
    """A damaged record of another manifest does not keep a file from being found."""
    world.deliver("m1", GOOD)
    world.deliver("m2", GOOD)
    world.run_once()
    world.store.put(world.layout.outcome(DAY, "m2"), b"{")
    assert trace(world, "/w/raw/m1-0.ndjson").whereabouts is Whereabouts.DONE


def test_another_version(world: World) -> None:
    """Where only an older version of a file was compacted, the trace says so."""
    world.deliver("m1", GOOD)
    world.run_once()
    world.file("m1-0.ndjson", FLAWED)
    found = trace(world, "/w/raw/m1-0.ndjson")
    assert found.whereabouts is Whereabouts.DONE
    assert found.message.startswith("this is what became of version ")
