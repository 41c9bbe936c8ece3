"""Clean-up: what is old goes, what is not committed and done stays and is named, a run does it once a day."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.changes import DeadLetter
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Accepted, Redrive, RunHeartbeat
from compactor.core.errors import AccessError, CompactorError, StuckError
from compactor.core.layout import ManifestKey, redriven_id
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.job.service import Service
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.upkeep.cleaner import (
    CHECKPOINT_AGE_SECONDS,
    KEPT_NAMED,
    ORPHAN_AGE_SECONDS,
    STILL_SECONDS,
    CleaningReport,
    Kind,
)
from compactor.upkeep.retention import Retention
from compactor.wiring import operating, streaming
from tests.support.fakes import FaultyStore, ListSource
from tests.support.harness import DAY, GOOD, DiedError, Harness

M0 = ManifestKey(DAY, "m0")

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS


def clean(harness: Harness, *, days: float = 30, store: ObjectStore | None = None, **how: Any) -> CleaningReport:
    return operating.cleaner(harness.app(store=store)).clean(archive_days=days, **how)


def world_after(age_seconds: float, manifests: int = 1) -> Harness:
    """So long after some manifests were done."""
    harness = Harness()
    for number in range(manifests):
        harness.deliver(f"m{number}", GOOD)
    harness.run_once()
    harness.clock.advance(age_seconds)
    return harness


def archived(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.archive_folder)]


def die_at(step: CrashPoint) -> Callable[[CrashPoint, str], None]:
    def die(reached: CrashPoint, _manifest_id: str) -> None:
        if reached == step:
            raise DiedError

    return die


@pytest.mark.parametrize("days", [1, 30])
@pytest.mark.parametrize("over", [False, True])
def test_archived_manifests_go_by_age(days: int, over: bool) -> None:
    """An archived manifest goes when it is as old as the setting says, and verify and a repeated run stay content."""
    harness = world_after(days * DAY_SECONDS + (1 if over else -1), manifests=3)
    length = sum(info.size_bytes for info in harness.store.list(harness.layout.archive_folder))
    report = clean(harness, days=days)
    assert report.removed[Kind.ARCHIVED] == (3 if over else 0)
    assert report.removed_bytes == (length if over else 0)
    assert (len(archived(harness)), report.kept) == (0 if over else 3, {})
    assert harness.verification().discrepancies == []
    assert harness.run_once().committed == 0
    harness.check_exact()


def test_dry_run_removes_nothing() -> None:
    """A dry run tells the same figures and leaves everything."""
    harness = world_after(31 * DAY_SECONDS, manifests=2)
    harness.store.put(harness.layout.checkpoint("run-1") + "/0", b"x")
    harness.clock.advance(CHECKPOINT_AGE_SECONDS)
    before = [*harness.store.list("/w/")]
    said = clean(harness, dry_run=True, all_checkpoints=True)
    assert [*harness.store.list("/w/")] == before
    done = clean(harness, all_checkpoints=True)
    assert (replace(said, dry_run=False), done.removed) == (done, {Kind.ARCHIVED: 2, Kind.CHECKPOINT: 1})


def _no_outcome(harness: Harness) -> None:
    harness.store.delete([harness.layout.outcome(M0)])


def _bad_outcome(harness: Harness) -> None:
    harness.store.put(harness.layout.outcome(M0), b"{")


def _not_done(harness: Harness) -> None:
    harness.store.delete([harness.layout.done(M0)])


def _dead_letter(harness: Harness) -> None:
    outcome = harness.commit("m0")
    letter = DeadLetter(
        manifest_id="m0",
        date=DAY,
        reason="empty",
        message="",
        source_uri="",
        run_id=outcome.run_id,
        decided_at=outcome.decided_at,
    )
    harness.store.put(harness.layout.outcome(M0), letter.model_dump_json().encode())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_no_outcome, "its manifest is not committed"),
        (_bad_outcome, "its outcome is unreadable"),
        (_not_done, "its commit is not done"),
        (_dead_letter, "its manifest is not committed"),
    ],
)
def test_archived_manifest_that_has_to_stay(damage: Callable[[Harness], None], reason: str) -> None:
    """An archived manifest whose commit and done are not on record stays, and is counted and named with the reason."""
    harness = world_after(31 * DAY_SECONDS, manifests=2)
    damage(harness)
    report = clean(harness)
    stays = harness.layout.archived_manifest(M0)
    assert (archived(harness), report.kept) == ([stays], {reason: 1})
    assert [(each.where, each.reason) for each in report.kept_named] == [(stays, reason)]


def test_strange_things_in_the_archive_stay() -> None:
    """What is no archived manifest by its name is not removed, and the markers of folders are passed over."""
    harness = world_after(0)
    names = [f"{DAY}/", f"{DAY}/deep/m0.json", "m0.json", f"{DAY}/m0.txt"]
    for name in names:
        harness.store.put(harness.layout.archive_folder + name, b"")
    harness.clock.advance(31 * DAY_SECONDS)
    report = clean(harness)
    assert report.kept == {"its name is not that of an archived manifest": 3}
    assert len(archived(harness)) == 4


def staged(harness: Harness, manifest_id: str, attempt: int = 1) -> str:
    uri = f"{harness.layout.staging_of_attempt(manifest_id, attempt)}out/0.parquet"
    harness.store.put(uri, b"x")
    return uri


@pytest.mark.parametrize(
    "step",
    [
        CrashPoint.ATTEMPTED,
        CrashPoint.CONVERTED,
        CrashPoint.DECIDED,
        CrashPoint.PUBLISHED,
        CrashPoint.DONE,
        CrashPoint.CLOSED,
    ],
)
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("over", [False, True])
def test_staging(step: CrashPoint, is_open: bool, over: bool) -> None:
    """Staging goes a day after the last write, unless its manifest is open or its commit is not done."""
    harness = Harness()
    uri = harness.deliver("m0", GOOD)
    with suppress(DiedError):
        harness.runner(on_crash_point=die_at(step)).run([uri])
    left = staged(harness, "m0", 7)
    harness.store.delete([] if is_open else [harness.layout.open_marker("m0")])
    is_open = harness.store.stat(harness.layout.open_marker("m0")) is not None
    harness.clock.advance(ORPHAN_AGE_SECONDS + (1 if over else -1))
    report = clean(harness)
    decided = step in {CrashPoint.DECIDED, CrashPoint.PUBLISHED}
    assert (harness.store.stat(left) is None) == (over and not is_open and not decided)
    assert sum(report.kept.values()) == int(over and (is_open or decided))
    harness.run_once()
    clean(harness)
    harness.store.delete([left])
    harness.check_exact()


def test_staging_of_the_unknown() -> None:
    """Staging of a manifest of which nothing is on record, or nothing that can be read, stays and is named."""
    harness = Harness()
    uris = [staged(harness, "unknown"), staged(harness, "unreadable")]
    harness.store.put(harness.layout.accepted("unreadable"), b"{")
    harness.clock.advance(ORPHAN_AGE_SECONDS + 1)
    report = clean(harness)
    assert all(harness.store.stat(uri) for uri in uris)
    assert report.kept == {"its manifest is not on record": 1, "its acceptance record is unreadable": 1}


def test_the_latest_write_counts_for_all() -> None:
    """Staging of several attempts goes together, a day after the last write to any of them."""
    harness = world_after(0)
    staged(harness, "m0", 1)
    harness.clock.advance(ORPHAN_AGE_SECONDS)
    staged(harness, "m0", 2)
    harness.clock.advance(ORPHAN_AGE_SECONDS - 1)
    assert clean(harness).removed == {}
    harness.clock.advance(1)
    assert clean(harness).removed == {Kind.STAGED: 2}


def put_redrive(harness: Harness, manifest: Manifest) -> None:
    """Put a redrive on record, and its manifest where jobs look, as `compactor redrive` does."""
    redrive = Redrive(
        kind="rejects",
        source="m0",
        number=1,
        counts={},
        manifest=manifest,
        run_id="r",
        redriven_at=harness.clock.now(),
    )
    assert RedriveLog(state=harness.app().state).record(M0, redrive)
    harness.put_manifest(f"{manifest.manifest_id}.json", manifest.to_json())


@pytest.mark.parametrize("state", ["done", "dead", "open", "quarantined", "unknown"])
@pytest.mark.parametrize("over", [False, True])
def test_redriven_inputs(state: str, over: bool) -> None:
    """Redriven lines go when they are old, and their manifest is done and quarantined none of their files."""
    harness = world_after(0)
    manifest_id = redriven_id("m0", 1)
    place = f"{harness.layout.redriven_inputs(manifest_id, 'run')}0.ndjson"
    harness.store.put(place, GOOD)
    named = harness.named(place).model_copy(update={"source_uri": "s3://raw/m0-0.ndjson"})
    if state == "dead":
        harness.put_manifest(f"{manifest_id}.json", b"[]")
    elif state == "quarantined":
        gone = named.model_copy(update={"uri": place + "x"})
        put_redrive(harness, harness.manifest(manifest_id, [named, gone]))
    elif state != "unknown":
        put_redrive(harness, harness.manifest(manifest_id, [named]))
    with suppress(DiedError):
        harness.runner(on_crash_point=die_at(CrashPoint.DECIDED) if state == "open" else lambda *_: None).run(
            harness.waiting()
        )
    harness.clock.advance(30 * DAY_SECONDS + (1 if over else -1))
    report = clean(harness)
    goes = over and state == "done"
    assert (harness.store.stat(place) is None) == goes
    assert report.removed[Kind.REDRIVEN] == int(goes)
    kept = [each for each in report.kept_named if each.where.startswith(harness.layout.redriven_folder)]
    assert len(kept) == int(over and state != "done")


def checkpoint(harness: Harness, run_id: str = "run-1") -> str:
    uri = f"{harness.layout.checkpoint(run_id + '-1')}/offsets/0"
    harness.store.put(uri, b"x")
    return uri


def beat(harness: Harness, run_id: str) -> None:
    now = harness.clock.now()
    sign = RunHeartbeat(run_id=run_id, host="elsewhere", process_id=1, started_at=now, heartbeat_at=now)
    harness.store.put(harness.layout.run(run_id), sign.model_dump_json().encode())


@pytest.mark.parametrize("lives", [False, True])
@pytest.mark.parametrize("over", [False, True])
def test_checkpoints_by_age(over: bool, lives: bool) -> None:
    """A checkpoint goes when no living run can own it, and stays while its run has a heartbeat."""
    harness = Harness()
    uri = checkpoint(harness)
    harness.clock.advance(CHECKPOINT_AGE_SECONDS + (1 if over else -1))
    if lives:
        beat(harness, "run-1")
    assert clean(harness).kept == ({"its run is active": 1} if over and lives else {})
    assert (harness.store.stat(uri) is None) == (over and not lives)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("age_seconds", [0, STILL_SECONDS - 1, STILL_SECONDS])
@pytest.mark.parametrize("lives", [False, True])
def test_rotating_checkpoints(age_seconds: float, force: bool, lives: bool) -> None:
    """All checkpoints may go once they were not written to for a while, or by force; never that of a living run."""
    harness = Harness()
    checkpoint(harness, "older")
    harness.clock.advance(STILL_SECONDS)
    uri = checkpoint(harness)
    harness.clock.advance(age_seconds)
    if lives:
        beat(harness, "run-1")
    may = not lives and (force or age_seconds >= STILL_SECONDS)
    cleaner = operating.cleaner(harness.app())
    if may:
        cleaner.check_checkpoints(force=force)
        assert clean(harness, all_checkpoints=True).removed == {Kind.CHECKPOINT: 2}
        return
    with pytest.raises(CompactorError, match=f"checkpoint {uri.removesuffix('offsets/0')}: .*active"):
        cleaner.check_checkpoints(force=force)


class LongStore(FaultyStore):
    """A store with a made-up long archive; it counts how many objects were listed."""

    listed = 0

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        if not prefix.endswith("/archive/"):
            yield from super().list(prefix, start_after=start_after)
            return
        for number in range(20_000):
            uri = f"{prefix}{DAY}/m{number:05d}.json"
            if start_after is not None and uri <= start_after:
                continue
            self.listed += 1
            age_days = 31 if number % 10 == 0 else 1
            written = datetime(2026, 1, 2, 12, tzinfo=UTC) - timedelta(days=age_days)
            yield ObjectInfo(uri, 1, "e", written)


def test_a_long_archive_is_streamed() -> None:
    """A long archive is neither held nor deleted as a whole, stops can come in between, and few are named."""
    harness = Harness()
    store, at = LongStore(harness.store), [0]

    def on_chunk(_report: CleaningReport) -> bool:
        assert store.listed - at[-1] <= 2_500
        at.append(store.listed)
        return True

    report = operating.cleaner(harness.app(store=store)).clean(archive_days=30, on_chunk=on_chunk)
    assert len(at) > 8
    assert report.kept == {"its manifest is not committed": 2_000}
    assert len(report.kept_named) == KEPT_NAMED


def with_archived(manifests: int) -> Harness:
    """A harness with so many archived manifests that are old enough to go."""
    harness = world_after(0)
    data = harness.store.read(harness.layout.archived_manifest(M0))
    outcome, done = harness.store.read(harness.layout.outcome(M0)), harness.store.read(harness.layout.done(M0))
    for number in range(manifests - 1):
        key = ManifestKey(DAY, f"n{number}")
        harness.store.put(harness.layout.archived_manifest(key), data)
        harness.store.put(harness.layout.outcome(key), outcome)
        harness.store.put(harness.layout.done(key), done)
    harness.clock.advance(31 * DAY_SECONDS)
    return harness


def test_deletion_in_chunks() -> None:
    """Cleaning ends between two chunks if it is told to, and the next call goes on."""
    harness = with_archived(501)
    cleaner = operating.cleaner(harness.app())
    cleaner.clean(archive_days=30, on_chunk=lambda _: False)
    assert len(archived(harness)) == 501 - 200
    assert cleaner.clean(archive_days=30).removed == {Kind.ARCHIVED: 301}
    assert archived(harness) == []


def daily(harness: Harness, on_wait: Callable[[Service], None], *, store: ObjectStore | None = None) -> None:
    """A run without end; the function is called at each of its looks at a stream that is never idle."""

    class BusySource(ListSource):
        def is_idle(self) -> bool:
            return False

    source = BusySource(harness.store, harness.layout.manifests_folder, on_wait=lambda: on_wait(job))
    job = streaming.service_on(harness.app(store=store), harness.engine(), source)
    job.run(once=False)


def test_a_busy_run_cleans_up_as_well() -> None:
    """Once a day, however busy its stream is."""
    harness, found = world_after(31 * DAY_SECONDS), list[int]()

    def on_wait(job: Service) -> None:
        harness.clock.advance(HOUR_SECONDS)
        job.tasks.wait()
        found.append(len(archived(harness)))
        if len(found) == 30:
            job.stop()

    daily(harness, on_wait)
    assert found[:22] == [1] * 22
    assert found[-1] == 0


def test_a_stop_ends_cleaning_between_deletions() -> None:
    """A run that is stopped while it cleans makes no further deletion."""
    deleted: list[int] = []

    class StoppingStore(FaultyStore):
        def delete(self, uris: Iterable[str]) -> None:
            gone = [uri for uri in uris if "/archive/" in uri]
            deleted.append(len(gone)) if gone else None
            super().delete(gone or uris)
            if len(deleted) == 3:
                jobs[0].stop()

    harness, jobs = with_archived(901), list[Service]()

    def on_wait(job: Service) -> None:
        jobs[:] = [job]
        harness.clock.advance(HOUR_SECONDS)
        job.tasks.wait()

    daily(harness, on_wait, store=StoppingStore(harness.store))
    assert (deleted, len(archived(harness))) == ([200] * 3, 901 - 600)


@pytest.mark.parametrize("trouble", ["denied", "damaged"])
def test_one_kind_that_can_never_be_cleaned(trouble: str) -> None:
    """It is told, and the other kinds of objects go."""

    class NoArchive(FaultyStore):
        def delete(self, uris: object) -> None:
            if trouble == "denied" and "/archive/" in str(uris):
                raise AccessError("denied")
            super().delete(uris)  # type: ignore[arg-type]

    harness = world_after(31 * DAY_SECONDS)
    if trouble == "damaged":
        harness.store.put(f"{harness.layout.changing_folder}archive~{DAY}~x.json", b"{")
    staged = f"{harness.layout.staging_folder}m0/9/file"
    harness.store.put(staged, b"")
    harness.clock.advance(ORPHAN_AGE_SECONDS)
    with pytest.raises((AccessError, StuckError)):
        clean(harness, store=NoArchive(harness.store))
    assert harness.store.stat(staged) is None


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_damaged_record_keeps_only_its_own_object(monkeypatch: pytest.MonkeyPatch, goes_on: bool) -> None:
    """The others are deleted, and the damage is told, even if the caller stops after that chunk."""
    harness, judge = world_after(31 * DAY_SECONDS, manifests=3), Retention.why_keep_archived

    def judged(retention: Retention, uri: str) -> object:
        if uri == harness.layout.archived_manifest(M0):
            raise StuckError("damaged")
        return judge(retention, uri)

    monkeypatch.setattr(Retention, "why_keep_archived", judged)
    with pytest.raises(StuckError, match="damaged"):
        clean(harness, on_chunk=lambda _: goes_on)
    assert archived(harness) == [harness.layout.archived_manifest(M0)]


def test_files_of_no_attempt_are_passed_over_one_by_one() -> None:
    """Below an output that a table lists, most files are of no attempt: they are never held all at once."""
    harness, listed = Harness(table={}), []

    class LongOutput(FaultyStore):
        def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
            if not prefix.startswith(harness.layout.output):
                yield from super().list(prefix, start_after=start_after)
                return
            for number in range(10_000):
                uri = f"{prefix}merged-parquet-{DAY}/m-{number:05}.snappy.parquet"
                if start_after is None or uri > start_after:
                    listed.append(uri)
                    yield ObjectInfo(uri, 1, "1", harness.clock.now() - timedelta(days=300))

    cleaner, at = operating.cleaner(harness.app(store=LongOutput(harness.store))), [0]

    def on_chunk(_report: CleaningReport) -> bool:
        assert len(listed) - at[-1] <= 2_000
        at.append(len(listed))
        return True

    assert cleaner.clean(archive_days=30, on_chunk=on_chunk).removed.total() == 0
    assert len(at) >= 11


def test_accepted_alone_is_no_commit() -> None:
    """An archived manifest that was accepted and nothing more stays."""
    harness = Harness()
    harness.ledger.accept(Accepted(manifest_id="m0", kind="refused", date=DAY, accepted_at=harness.clock.now()))
    harness.store.put(harness.layout.archived_manifest(M0), b"{}")
    harness.clock.advance(31 * DAY_SECONDS)
    assert clean(harness).kept == {"its manifest is not committed": 1}
