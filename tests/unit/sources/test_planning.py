"""Planning from a listing: each file version in exactly one manifest, also if planners die, wake late or race."""

from collections import Counter
from contextlib import nullcontext
from datetime import timedelta

import pytest

from compactor.adapters.claims import JournalClaims
from compactor.core.crash_points import CrashPoint, OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.documents.changes import Commit
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.errors import SettingsError
from compactor.core.ports import ObjectStore
from compactor.sources.candidates import SKIP_REASONS
from compactor.sources.folders.planning import OnReplaced
from compactor.sources.input_files import FileScope
from compactor.sources.plan import Plan
from compactor.wiring import finding
from tests.support.folders import folder_planner
from tests.support.harness import DAY, DiedError, Harness, dying_at, one_at_a_time
from tests.support.interleaving import interleave
from tests.support.memory_store import MemoryClaims
from tests.support.rebuilding import NEVER, WatchedStore

ROW = b'{"id": "1"}\n'
LEASE_SECONDS = 600.0
DAYS = ("2026-01-02", "2026-01-03", "2026-01-04")
WRITES = 18
"""An entry of the journal, a manifest and the record that binds it, for each of six manifests."""


def lake() -> Harness:
    harness = Harness(builder={"target_manifest_bytes": 2 * len(ROW)}, lease_seconds=LEASE_SECONDS)
    for number in range(5):
        harness.file(f"{DAY}-{number}.ndjson", b'{"id": "%d"}\n' % number)
    return harness


@pytest.fixture
def harness() -> Harness:
    return lake()


def plan(harness: Harness, on_crash_point: OnCrashPoint = ignore_crash_point) -> Plan:
    """One planner, in a process of its own, that writes one group after the other, so that its steps come in order."""
    app = harness.app(on_crash_point=on_crash_point)
    return finding.plan(app, "/w/raw", using=one_at_a_time(app))


def planned(harness: Harness) -> Counter[str]:
    """How often each input is named by a waiting manifest."""
    return Counter(
        file.uri
        for uri in harness.waiting()
        for file in parse_manifest(
            harness.store.read(uri), uri=uri, modified_at=harness.clock.now(), allowed_prefixes=["/w/raw"]
        ).files
    )


def all_inputs(harness: Harness) -> Counter[str]:
    return Counter(info.uri for info in harness.store.list("/w/raw/"))


def committed(harness: Harness) -> Counter[str]:
    """How often each input was compacted."""
    outcomes = [harness.ledger.outcome(each) for each in harness.ledger.manifests()]
    return Counter(file.uri for commit in outcomes if isinstance(commit, Commit) for file in commit.files)


def test_a_dry_run_after_a_plan_offers_nothing(harness: Harness) -> None:
    """A dry run plans no file that is planned already, and neither claims nor writes."""
    offered = finding.plan(harness.app(), "/w/raw", dry_run=True)
    assert ([each.files for each in offered.manifests], planned(harness)) == ([2, 2, 1], Counter())
    plan(harness)
    before = harness.waiting()
    offered = finding.plan(harness.app(), "/w/raw", dry_run=True)
    assert (offered.manifests, offered.planned_before, harness.waiting()) == ([], 5, before)


def test_every_file_once(harness: Harness) -> None:
    """All files are planned, in manifests near the target, and a second plan finds nothing to do."""
    first = plan(harness)
    assert [manifest.files for manifest in first.manifests] == [2, 2, 1]
    assert planned(harness) == all_inputs(harness)
    second = plan(harness)
    assert (second.manifests, second.planned_before, second.held) == ([], 5, 0)
    harness.run_once()
    assert plan(harness).planned_before == 5
    harness.check_exact()


@pytest.mark.parametrize("step", [PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED, PlanCrashPoint.BOUND])
@pytest.mark.parametrize("occurrence", [1, 2, 3])
@pytest.mark.parametrize("lease_is_over", [False, True])
def test_death_and_delay_at_every_step(step: PlanCrashPoint, occurrence: int, lease_is_over: bool) -> None:
    """Another one plans meanwhile, within the lease or behind it: each file is compacted once in the end."""

    def others(made: Harness) -> None:
        made.clock.advance(LEASE_SECONDS + 1 if lease_is_over else 0)
        plan(made)
        made.run_once()
        assert max(committed(made).values(), default=1) == 1

    def check(made: Harness) -> None:
        made.clock.advance(LEASE_SECONDS + 1)
        plan(made)
        made.run_once()
        assert committed(made) == all_inputs(made)
        made.check_exact()

    interleave(step, lake, plan, others, check, occurrence=occurrence)


def test_what_a_dead_planner_claimed(harness: Harness) -> None:
    """It is held for its lease, and a plan says until when."""
    with pytest.raises(DiedError):
        plan(harness, dying_at(PlanCrashPoint.CLAIMED, 2))
    within_lease = plan(harness)
    assert (within_lease.held, within_lease.held_until is not None) == (2, True)
    assert (planned(harness).total(), all_inputs(harness).total()) == (3, 5)
    harness.clock.advance(LEASE_SECONDS + 1)
    assert (plan(harness).held, planned(harness)) == (0, all_inputs(harness))


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("late", [False, True], ids=["dead", "late"])
def test_planners_with_a_journal(late: bool, every: int) -> None:
    """One dies, or stops until another has planned, at any write for some date: each file is planned once."""
    for change in range(int(late), WRITES, every):
        _plan_with_trouble_at(change, late=late)


def _plan_with_trouble_at(change: int, *, late: bool) -> None:
    harness = Harness(builder={"target_manifest_bytes": 2 * len(ROW)}, lease_seconds=LEASE_SECONDS)
    for number in range(9):
        harness.file(f"{DAYS[number // 3]}-{number}.ndjson", b'{"id": "%d"}\n' % number)

    def plan_by(store: ObjectStore) -> None:
        harness.claims = JournalClaims(store, harness.layout.claims_folder)
        app = harness.app(store=store)
        finding.plan(app, "/w/raw", using=one_at_a_time(app))

    def overtake() -> None:
        if store.changes == change + 1:
            harness.clock.advance(LEASE_SECONDS + 1)
            plan_by(harness.store)

    store = WatchedStore(harness.store, NEVER if late else change, overtake if late else lambda: None)
    with nullcontext() if late else pytest.raises(DiedError):
        plan_by(store)
    harness.clock.advance(LEASE_SECONDS + 1)
    plan_by(harness.store)
    assert planned(harness) == all_inputs(harness)
    harness.run_once()
    assert committed(harness) == all_inputs(harness)


def test_late_manifest_never_takes_effect(harness: Harness) -> None:
    """A manifest that is written after its id was revoked never takes effect, and the job removes it."""
    late: list[str] = []

    def die(_step: CrashPoint, manifest_id: str) -> None:
        late.append(manifest_id)
        raise DiedError

    with pytest.raises(DiedError):
        plan(harness, die)
    harness.clock.advance(LEASE_SECONDS + 1)
    plan(harness)
    files = [harness.named(f"/w/raw/{DAY}-{number}.ndjson") for number in (0, 1)]
    data = harness.manifest(late[0], files).to_json()
    harness.put_manifest(f"{late[0]}.json", data)
    report = harness.run_once()
    assert report.dead_lettered == 0
    assert harness.store.stat(harness.layout.manifest(late[0])) is None
    harness.check_exact()


def test_manifest_accepted_before_it_could_be_revoked(harness: Harness) -> None:
    """A claim whose lease ran out stays with its manifest if that was accepted, also where the object is gone."""
    plan(harness)
    harness.run_once()
    harness.clock.advance(100 * LEASE_SECONDS)
    again = plan(harness)
    assert (again.manifests, again.planned_before) == ([], 5)


def test_new_version_is_a_new_object() -> None:
    """An object that is written again is planned again."""
    harness = Harness(root="s3://lake")
    for row in (ROW, b'{"id": "new"}\n'):
        harness.file(f"{DAY}-0.ndjson", row)
        assert finding.plan(harness.app(), "s3://lake/raw").files == 1
        harness.run_once()
    assert harness.verification().rows == 2


def test_forgotten_claims(harness: Harness) -> None:
    """Files older than the memory of the claim table are not planned again, because the ledger knows them."""
    plan(harness)
    harness.run_once()
    harness.clock.advance(91 * 86400)
    harness.file(f"{DAY}-young.ndjson", ROW)
    harness.claims = MemoryClaims()
    again = plan(harness)
    assert again.planned_before == 5
    assert (again.files, planned(harness)) == (1, Counter([f"/w/raw/{DAY}-young.ndjson"]))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("names_versions", [False, True])
def test_files_of_a_manifest_of_another_program(is_done: bool, names_versions: bool) -> None:
    """Files without a claim are not planned again where a manifest that waits, or one of their day, has them."""
    harness = Harness()
    file = harness.file(f"{DAY}-a.ndjson", ROW)
    named = file if names_versions else ManifestFile(uri=file.uri)
    harness.put_manifest("by-hand.json", harness.manifest("by-hand", [named]).to_json())
    if is_done:
        harness.run_once()
    harness.file(f"{DAY}-b.ndjson", ROW)
    found = plan(harness)
    assert (found.planned_before, found.files) == (1, 1)
    assert planned(harness)[f"/w/raw/{DAY}-b.ndjson"] == 1
    harness.run_once()
    harness.check_exact()


def test_a_file_that_was_missing_is_planned_when_it_comes() -> None:
    """A file that a manifest without versions named too early is not lost to planning."""
    harness = Harness()
    early = ManifestFile(uri=f"/w/raw/{DAY}-late.ndjson")
    harness.put_manifest("by-hand.json", harness.manifest("by-hand", [early]).to_json())
    harness.run_once()
    harness.file(f"{DAY}-late.ndjson", ROW)
    assert [manifest.files for manifest in plan(harness).manifests] == [1]
    harness.run_once()
    harness.check_exact()


def test_a_file_for_a_prefix(harness: Harness) -> None:
    """A file in place of a folder is refused in words, instead of planning nothing."""
    with pytest.raises(SettingsError, match="is a file, expected its folder"):
        finding.plan(harness.app(), f"/w/raw/{DAY}-0.ndjson")


def test_dry_run(harness: Harness) -> None:
    """A dry run shows the manifests and leaves no trace: neither claims nor objects."""
    before = [info.uri for info in harness.store.list("/w/")]
    shown = finding.plan(harness.app(), "/w/raw", dry_run=True)
    assert [manifest.files for manifest in shown.manifests] == [2, 2, 1]
    assert [info.uri for info in harness.store.list("/w/")] == before
    assert [manifest.files for manifest in plan(harness).manifests] == [2, 2, 1]


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
        ("_SUCCESS_STORIES.ndjson", ROW, "hidden"),
        ("_started_early.ndjson", ROW, "hidden"),
        (".hidden.ndjson", ROW, "hidden"),
        (".hive-staging_1/000000_0", ROW, "hidden"),
        ("_empty.ndjson", b"", "hidden"),
        ("a_b.c/d.ndjson", ROW, None),
        ("odd *?[{ %+ name.ndjson", ROW, None),
    ],
)
def test_what_is_input(name: str, content: bytes, reason: str | None) -> None:
    """What Spark and Hadoop leave beside data, and what holds nothing, is no input. `compact` decides the same."""
    harness = Harness()
    harness.file(name, content)
    survey = folder_planner(harness).plan(dry_run=True)
    found = plan(harness)
    assert survey.skipped == found.skipped
    assert found.skipped == ({reason: 1} if reason else {})
    assert planned(harness) == Counter([] if reason else [f"/w/raw/{name}"])
    assert set(found.skipped) <= set(SKIP_REASONS)


def test_hidden_names_on_request() -> None:
    """They are planned then, apart from markers of jobs. What is asked for by its folder is not hidden."""
    harness = Harness()
    for name in ("_a.ndjson", "b/.c/d.ndjson", "_temporary/0/e.ndjson"):
        harness.file(name, ROW)
    assert finding.plan(harness.app(), "/w/raw/b/.c").files == 1
    found = finding.plan(harness.app(), "/w/raw", FileScope(hidden=True))
    assert (found.files, found.planned_before, found.skipped) == (1, 1, {"job_marker": 1})


def test_date_and_since() -> None:
    """--date takes the files of a day by name, key or time; --since those written from a moment on."""
    harness = Harness()
    harness.file("2025-12-30-a.ndjson", ROW)
    harness.file("2025-12-30/b.ndjson", ROW)
    harness.clock.advance(3600)
    harness.file("c.ndjson", ROW)
    app = harness.app()
    by_date = finding.plan(app, "/w/raw", FileScope(date="2025-12-30"), dry_run=True)
    assert [manifest.files for manifest in by_date.manifests] == [2]
    assert by_date.skipped == {"other_date": 1}
    # Half a second earlier counts as well: S3 tells whole seconds.
    since = harness.clock.now() + timedelta(milliseconds=500)
    by_time = finding.plan(app, "/w/raw", FileScope(since=since), dry_run=True)
    assert (by_time.files, by_time.skipped) == (1, {"too_old": 2})
    finding.plan(app, "/w/raw", FileScope(since=since))
    assert planned(harness) == Counter(["/w/raw/c.ndjson"])


def test_one_day_a_manifest() -> None:
    """Files of several days never share a manifest."""
    harness = Harness()
    for day in ("2025-12-30", "2025-12-31"):
        harness.file(f"{day}.ndjson", ROW)
    assert [manifest.date for manifest in plan(harness).manifests] == ["2025-12-30", "2025-12-31"]


def test_prefix_outside(harness: Harness) -> None:
    """A prefix outside the allowed ones is refused, also one that climbs out."""
    for prefix in ("/w/elsewhere", "/w/raw/../elsewhere", "/w/rawer"):
        with pytest.raises(SettingsError, match=r"expected a folder within input\.allowed_prefixes: /w/raw"):
            finding.plan(harness.app(), prefix)


@pytest.mark.parametrize("name", ["../beside.ndjson", "./dot.ndjson", "a/../b.ndjson", "caf\udce9.ndjson"])
def test_a_name_that_no_manifest_can_hold(harness: Harness, name: str) -> None:
    """A file that would have its whole manifest refused is left out, and all other files are compacted."""
    before = all_inputs(harness)
    harness.store.put(f"/w/raw/{name}", ROW)
    assert [each.reason for each in plan(harness).left_out] == ["bad_name"]
    harness.run_once()
    assert committed(harness) == before


@pytest.mark.parametrize(("age_seconds", "is_left"), [(1, True), (3, False), (-1, True), (-3600, False)])
def test_what_is_being_written_is_left(harness: Harness, age_seconds: float, is_left: bool) -> None:
    """A file that was written to just now may not be whole; one from the future, by a clock that is wrong, is taken."""
    now = harness.clock.now() + timedelta(days=1)
    harness.clock.set(now - timedelta(seconds=age_seconds))
    harness.file(f"{DAY}-late.ndjson", ROW)
    harness.clock.set(now)
    found = finding.plan(harness.app(), "/w/raw", FileScope(settle_seconds=2))
    assert found.skipped == ({"unsettled": 1} if is_left else {})
    assert sum(planned(harness).values()) == (5 if is_left else 6)


@pytest.mark.parametrize(("on_replaced", "files"), [("quarantine", 1), ("append", 2)])
def test_a_replaced_file_is_left_out(harness: Harness, on_replaced: OnReplaced, files: int) -> None:
    """A local file with other lines needs a person, who may have all of its lines appended."""
    plan(harness)
    harness.run_once()
    harness.file(f"{DAY}-0.ndjson", b'{"id": "new"}\n')
    harness.file(f"{DAY}-new.ndjson", ROW)
    found = finding.plan(harness.app(), "/w/raw", on_replaced=on_replaced)
    assert (found.files, [each.reason for each in found.left_out]) == (files, ["replaced"] * (2 - files))
