"""Planning from a listing: each file version in exactly one manifest, whoever dies, wakes late or plans as well."""

import threading
from collections import Counter
from datetime import timedelta

import pytest

from compactor.adapters.memory.store import MemoryClaims
from compactor.core.crash_points import OnStep, Step, ignore_step
from compactor.core.errors import SettingsError
from compactor.core.manifest import ManifestFile, parse_manifest
from compactor.core.records import Commit
from compactor.manifests.planning import SKIP_REASONS, Plan
from tests.support.harness import DAY, DiedError, World

ROW = b'{"id": "1"}\n'
LEASE_SECONDS = 600.0


@pytest.fixture
def world() -> World:
    world = World(builder={"target_manifest_bytes": 2 * len(ROW), "claim_lease_seconds": LEASE_SECONDS})
    for number in range(5):
        world.file(f"{DAY}-{number}.ndjson", b'{"id": "%d"}\n' % number)
    return world


def plan(world: World, on_step: OnStep = ignore_step) -> Plan:
    """One planner, in a process of its own."""
    return world.app(on_step=on_step).planner.plan("/w/raw")


def planned(world: World) -> Counter[str]:
    """How often each input is named by a waiting manifest."""
    return Counter(
        file.uri
        for uri in world.waiting()
        for file in parse_manifest(
            world.store.read(uri), uri=uri, modified_at=world.clock.now(), allowed_prefixes=["/w/raw"]
        ).files
    )


def all_inputs(world: World) -> Counter[str]:
    return Counter(info.uri for info in world.store.list("/w/raw/"))


def committed(world: World) -> Counter[str]:
    """How often each input was compacted."""
    outcomes = [world.ledger.outcome(*each) for each in world.ledger.manifests()]
    return Counter(file.uri for commit in outcomes if isinstance(commit, Commit) for file in commit.files)


def test_every_file_once(world: World) -> None:
    """All files are planned, in manifests near the target, and a second plan finds nothing to do."""
    first = plan(world)
    assert [len(manifest.files) for manifest in first.manifests] == [2, 2, 1]
    assert planned(world) == all_inputs(world)
    second = plan(world)
    assert (second.manifests, second.planned_before, second.held) == ([], 5, 0)
    world.run_once()
    assert plan(world).planned_before == 5
    world.check_exact()


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.PLANNED])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
@pytest.mark.parametrize("lease_is_over", [False, True])
def test_two_planners(world: World, step: Step, occurrence: int, lease_is_over: bool) -> None:
    """A planner that stops at any step while another one plans: each file is compacted once, however late it wakes."""
    paused, overtaken = threading.Event(), threading.Event()
    reached = 0

    def wait(found: Step, _manifest_id: str) -> None:
        nonlocal reached
        reached += found == step
        if found == step and reached == occurrence:
            paused.set()
            assert overtaken.wait(30)

    thread = threading.Thread(target=plan, args=(world, wait))
    thread.start()
    try:
        assert paused.wait(30)
        if lease_is_over:
            world.clock.advance(LEASE_SECONDS + 1)
        plan(world)
    finally:
        overtaken.set()
        thread.join()
    world.run_once()
    assert max(committed(world).values()) == 1
    world.clock.advance(LEASE_SECONDS + 1)
    plan(world)
    world.run_once()
    assert committed(world) == all_inputs(world)
    world.check_exact()


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.PLANNED])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_planner_that_dies(world: World, step: Step, occurrence: int) -> None:
    """What a dead planner claimed is left alone for its lease, and then planned by the next one."""
    reached = 0

    def die(found: Step, _manifest_id: str) -> None:
        nonlocal reached
        reached += found == step
        if found == step and reached == occurrence:
            raise DiedError

    with pytest.raises(DiedError):
        plan(world, die)
    within_lease = plan(world)
    held = sum(all_inputs(world).values()) - sum(planned(world).values())
    assert within_lease.held == held
    assert (within_lease.held_until is not None) == (held > 0)
    assert (step == Step.CLAIMED) == (held > 0)
    world.clock.advance(LEASE_SECONDS + 1)
    plan(world)
    assert planned(world) == all_inputs(world)
    world.run_once()
    world.check_exact()


def test_late_manifest_is_refused(world: World) -> None:
    """A manifest that is written after its planner was given up never takes effect; it says why."""
    late: list[str] = []

    def die(_step: Step, manifest_id: str) -> None:
        late.append(manifest_id)
        raise DiedError

    with pytest.raises(DiedError):
        plan(world, die)
    world.clock.advance(LEASE_SECONDS + 1)
    plan(world)
    files = [world.named(f"/w/raw/{DAY}-{number}.ndjson") for number in (0, 1)]
    data = world.manifest(late[0], files).to_json()
    world.put_manifest(f"{late[0]}.json", data)
    report = world.run_once()
    assert report.dead_lettered == 1
    [letter] = [info.uri for info in world.store.list("/w/state/failed/") if info.uri.endswith(".reason.json")]
    assert b"given up by its planner" in world.store.read(letter)
    world.check_exact()


def test_manifest_accepted_before_it_could_be_voided(world: World) -> None:
    """A claim whose lease ran out stays with its manifest if that was accepted, also where the object is gone."""
    plan(world)
    world.run_once()
    world.clock.advance(100 * LEASE_SECONDS)
    again = plan(world)
    assert (again.manifests, again.planned_before) == ([], 5)


def test_new_version_is_a_new_file(world: World) -> None:
    """A file that is written again is planned again."""
    plan(world)
    world.run_once()
    world.file(f"{DAY}-0.ndjson", b'{"id": "new"}\n')
    assert [[file.uri for file in manifest.files] for manifest in plan(world).manifests] == [[f"/w/raw/{DAY}-0.ndjson"]]


def test_forgotten_claims(world: World) -> None:
    """Files older than the memory of the claim table are not planned again, because the ledger knows them."""
    plan(world)
    world.run_once()
    world.clock.advance(91 * 86400)
    world.file(f"{DAY}-young.ndjson", ROW)
    world.claims = MemoryClaims(lifetime_days=90)
    again = plan(world)
    assert again.planned_before == 5
    assert [file.uri for manifest in again.manifests for file in manifest.files] == [f"/w/raw/{DAY}-young.ndjson"]


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("names_versions", [False, True])
def test_files_of_a_manifest_that_somebody_else_wrote(is_done: bool, names_versions: bool) -> None:
    """Files without a claim are not planned again where a manifest that waits, or one of their day, has them."""
    world = World()
    file = world.file(f"{DAY}-a.ndjson", ROW)
    named = file if names_versions else ManifestFile(uri=file.uri)
    world.put_manifest("by-hand.json", world.manifest("by-hand", [named]).to_json())
    if is_done:
        world.run_once()
    world.file(f"{DAY}-b.ndjson", ROW)
    found = plan(world)
    assert found.planned_before == 1
    assert [each.uri for manifest in found.manifests for each in manifest.files] == [f"/w/raw/{DAY}-b.ndjson"]
    world.run_once()
    world.check_exact()


def test_a_file_that_was_missing_is_planned_when_it_comes() -> None:
    """A file that a manifest without versions named too early is not lost to planning."""
    world = World()
    early = ManifestFile(uri=f"/w/raw/{DAY}-late.ndjson")
    world.put_manifest("by-hand.json", world.manifest("by-hand", [early]).to_json())
    world.run_once()
    world.file(f"{DAY}-late.ndjson", ROW)
    assert [len(manifest.files) for manifest in plan(world).manifests] == [1]
    world.run_once()
    world.check_exact()


def test_a_file_for_a_prefix(world: World) -> None:
    """A file in place of a folder is refused in words, instead of planning nothing."""
    with pytest.raises(SettingsError, match="is a file, expected the folder"):
        world.app().planner.plan(f"/w/raw/{DAY}-0.ndjson")


def test_dry_run(world: World) -> None:
    """A dry run shows the manifests and leaves no trace: neither claims nor objects."""
    before = [info.uri for info in world.store.list("/w/")]
    shown = world.app().planner.plan("/w/raw", dry_run=True)
    assert [len(manifest.files) for manifest in shown.manifests] == [2, 2, 1]
    assert [info.uri for info in world.store.list("/w/")] == before
    assert [len(manifest.files) for manifest in plan(world).manifests] == [2, 2, 1]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.ndjson", b"", "empty"),
        ("folder/", b"", "folder_marker"),
        ("_SUCCESS", b"", "job_marker"),
        ("_started_123", b"x", "job_marker"),
        ("_committed_123", b"x", "job_marker"),
        ("_temporary/0/part-0.json", ROW, "job_marker"),
        ("day/_spark_metadata/0", ROW, "job_marker"),
        ("_SUCCESS_STORIES.ndjson", ROW, None),
        ("_started_early.ndjson", ROW, None),
        (".hidden.ndjson", ROW, None),
        ("odd *?[{ %+ name.ndjson", ROW, None),
    ],
)
def test_what_is_input(name: str, content: bytes, reason: str | None) -> None:
    """Only what Spark and Hadoop leave beside data, and what holds nothing, is no input."""
    world = World()
    world.file(name, content)
    found = plan(world)
    assert found.skipped == ({reason: 1} if reason else {})
    assert [file.uri for manifest in found.manifests for file in manifest.files] == (
        [] if reason else [f"/w/raw/{name}"]
    )
    assert set(found.skipped) <= set(SKIP_REASONS)


def test_date_and_since() -> None:
    """--date takes the files of a day by name, key or time; --since those written from a moment on."""
    world = World()
    world.file("2025-12-30-a.ndjson", ROW)
    world.file("2025-12-30/b.ndjson", ROW)
    world.clock.advance(3600)
    world.file("c.ndjson", ROW)
    planner = world.app().planner
    by_date = planner.plan("/w/raw", date="2025-12-30", dry_run=True)
    assert [len(manifest.files) for manifest in by_date.manifests] == [2]
    assert by_date.skipped == {"other_date": 1}
    # Half a second earlier counts as well: S3 tells whole seconds.
    since = world.clock.now() + timedelta(milliseconds=500)
    by_time = planner.plan("/w/raw", since=since, dry_run=True)
    assert [[file.uri for file in manifest.files] for manifest in by_time.manifests] == [["/w/raw/c.ndjson"]]
    assert by_time.skipped == {"too_old": 2}


def test_one_day_a_manifest() -> None:
    """Files of several days never share a manifest."""
    world = World()
    for day in ("2025-12-30", "2025-12-31"):
        world.file(f"{day}.ndjson", ROW)
    assert [manifest.date for manifest in plan(world).manifests] == ["2025-12-30", "2025-12-31"]


def test_prefix_outside(world: World) -> None:
    """A prefix outside the allowed ones is refused, also one that climbs out."""
    for prefix in ("/w/elsewhere", "/w/raw/../elsewhere", "/w/rawer"):
        with pytest.raises(SettingsError, match=r"expected a folder within input\.allowed_prefixes: /w/raw"):
            world.app().planner.plan(prefix)


@pytest.mark.parametrize("name", ["../beside.ndjson", "./dot.ndjson", "a/../b.ndjson", "caf\udce9.ndjson"])
def test_a_name_that_no_manifest_can_hold(world: World, name: str) -> None:
    """A file that would have its whole manifest refused is left out, and all other files are compacted."""
    before = all_inputs(world)
    world.store.put(f"/w/raw/{name}", ROW)
    assert plan(world).skipped == {"bad_name": 1}
    world.run_once()
    assert committed(world) == before


@pytest.mark.parametrize(("age_seconds", "is_left"), [(1, True), (3, False), (-1, True), (-3600, False)])
def test_what_is_being_written_is_left(world: World, age_seconds: float, is_left: bool) -> None:
    """A file that was written to just now may not be whole; one from the future, by a clock that is wrong, is taken."""
    now = world.clock.now() + timedelta(days=1)
    world.clock.set(now - timedelta(seconds=age_seconds))
    world.file(f"{DAY}-late.ndjson", ROW)
    world.clock.set(now)
    found = world.app().planner.plan("/w/raw", settle_seconds=2)
    assert found.skipped == ({"unsettled": 1} if is_left else {})
    assert sum(planned(world).values()) == (5 if is_left else 6)


def test_a_replaced_file_is_planned_and_counted(world: World) -> None:
    """A new version of a file is a new file, and somebody should know that the old one's rows stay."""
    plan(world)
    assert plan(world).replaced == 0
    world.file(f"{DAY}-0.ndjson", ROW + ROW)
    world.file(f"{DAY}-new.ndjson", ROW)
    again = plan(world)
    assert sum(len(manifest.files) for manifest in again.manifests) == 2
    assert again.replaced == 1
