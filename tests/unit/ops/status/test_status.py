"""`status`: what waits, what is open, what is dead and what was done, at a cost that does not grow."""

from dataclasses import replace
from datetime import timedelta

import pytest

from compactor.cli.ui.status_screen import fields
from compactor.control.diagnosis.health import Condition
from compactor.core.crash_points import CrashPoint
from compactor.core.errors import StoreUnavailable
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.status.health import health
from compactor.ops.status.reading import COMMITS_READ, LATENCY_COMMITS, LETTERS_READ, MANIFESTS_READ
from compactor.ops.status.values import Status
from compactor.wiring import operating
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import rebuild


def status(harness: Harness, store: FaultyStore | None = None) -> Status:
    return operating.status_reader(harness.app(store=store)).read()


def test_of_nothing() -> None:
    """A place where nothing ever happened has a status too."""
    found = status(Harness())
    assert (found.state.word, found.backlog.manifests, found.backlog.input_bytes) == ("empty", 0, 0)
    assert (found.dead_letters.manifests, found.schema.version, found.schema.newest_column) == (0, 0, "")
    assert (found.recent, found.output_bytes_per_input_byte, found.latency, found.drain.seconds) == ((), None, None, 0)
    assert found.rates.at_work_bytes_per_second is None


def test_a_schema_version_that_cannot_be_read() -> None:
    """It hides nothing else: the state names it, and so does the screen."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.put_manifest("bad.json", b"{")
    harness.run_once()
    harness.store.put(harness.layout.schema(1), b"{ damaged")
    found = status(harness)
    assert (found.dead_letters.open, len(found.recent), found.schema.version) == (1, 1, 0)
    assert harness.layout.schema(1) in found.schema.error
    assert "schemas/1.json" in "".join(value for name, *rest in fields(found) if name == "schema" for value in rest[0])
    healthy = replace(found, dead_letters=replace(found.dead_letters, open=0))
    reported = health(healthy, operating.status_reader(harness.app()).rules)
    assert (reported.word, reported.condition) == ("needs_you", Condition.RECORDS_UNREADABLE)


def test_of_work() -> None:
    """Backlog and its age, open manifests, dead letters by reason, schema and latest commits are told."""
    harness = Harness()
    for number in range(2):
        harness.deliver(f"m{number}", GOOD)
    harness.put_manifest("bad.json", b"{")
    harness.run_once()

    def die(step: CrashPoint, _manifest_id: str) -> None:
        if step == CrashPoint.OPENED:
            raise DiedError

    uri = harness.deliver("open", GOOD)
    try:
        harness.runner(on_crash_point=die).run([uri])
    except DiedError:
        harness.clock.advance(90)
    harness.deliver("young", FLAWED)
    harness.store.put(harness.layout.pending_part("2026-01-02-part"), b"{}")
    found = status(harness)
    backlog = found.backlog
    assert (backlog.manifests, backlog.input_bytes, backlog.oldest_seconds) == (2, len(GOOD) + len(FLAWED), 90)
    assert (backlog.begun_manifests, backlog.oldest_begun, backlog.oldest_begun_seconds) == (1, "open", 90)
    assert (backlog.pending_parts, backlog.is_extrapolated) == (1, False)
    assert (found.dead_letters.open, found.dead_letters.by_reason) == (1, {"not_json": 1})
    assert (found.schema.version, found.schema.columns, found.schema.newest_column) == (1, 3, "late")
    assert sorted(commit.manifest_id for commit in found.recent) == ["m0", "m1"]
    assert found.state.word == "stopped"


def test_rates() -> None:
    """The rate at work is stored input over seconds of work; what comes in is told apart from what goes out."""
    harness = Harness()
    harness.deliver("m", GOOD)
    harness.run_once()
    [commit] = harness.ledger.recent()
    harness.ledger.remember(commit.model_copy(update={"seconds": 4.0, "input_bytes": 200 - commit.input_bytes}))
    harness.clock.advance(60)
    harness.deliver("next", GOOD)
    found = status(harness)
    assert found.rates.at_work_bytes_per_second == 50
    assert found.output_bytes_per_input_byte == 2 * commit.output_bytes / 200
    seconds = found.rates.window_seconds
    assert found.rates.processed_bytes_per_second * seconds == pytest.approx(200)
    assert found.rates.arriving_bytes_per_second * seconds == pytest.approx(200 + len(GOOD))


def test_latency() -> None:
    """Latency goes from each file's event to when its manifest was done."""
    harness = Harness()
    harness.deliver("m", GOOD, GOOD)
    harness.clock.advance(40)
    harness.run_once()
    latency = status(harness).latency
    assert latency is not None
    assert (latency.times, latency.p50_seconds, latency.p99_seconds) == (2, 40, 40)


def test_latency_is_that_of_the_latest() -> None:
    """Of more commits than are read, the latest ones count."""
    harness = Harness()
    for number in range(2 * LATENCY_COMMITS):
        uri = harness.deliver(f"m{number:02d}", GOOD)
        harness.clock.advance(100 - number)
        harness.runner().run([uri])
    latency = status(harness).latency
    assert latency is not None
    assert (latency.times, latency.p99_seconds) == (LATENCY_COMMITS, 100 - LATENCY_COMMITS)


def test_how_far_files_are_looked_for() -> None:
    """It is told in how many of the latest commits files were looked for, not how many of those had some."""
    harness = Harness()
    for number in range(2 * COMMITS_READ + 4):
        uri = harness.deliver(f"m{number:02d}", GOOD, GOOD)
        if number % 2:
            harness.store.delete([f"/w/raw/m{number:02d}-1.ndjson"])
        harness.runner().run([uri])
        harness.clock.advance(1)
    files = status(harness).quarantined_files
    assert (files.open, files.commits) == (COMMITS_READ, 2 * COMMITS_READ - 1)


def test_damaged_record_of_a_redrive() -> None:
    """Files whose redrive log cannot be read are open, as a person has to check them."""
    harness = Harness()
    uri = harness.deliver("m", GOOD, GOOD)
    harness.store.delete(["/w/raw/m-1.ndjson"])
    harness.runner().run([uri])
    harness.file("m-1.ndjson", GOOD)
    app = harness.app()
    operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")), dry_run=False)
    assert status(harness).quarantined_files.open == 0
    [commit] = harness.ledger.recent()
    harness.store.put(harness.layout.redrive(ManifestKey(commit.date, "m"), 1), b"{")
    assert status(harness).quarantined_files.by_status == {"missing": 1}


def test_damaged_dead_letter() -> None:
    """A dead letter that cannot be read is open, as a person has to check it."""
    harness = Harness()
    harness.put_manifest("bad.json", b"{")
    harness.run_once()
    reason = harness.layout.outcome(harness.dead_letter("bad").key)
    whole = harness.store.read(reason)
    harness.store.put(reason, b"{")
    reader = operating.status_reader(harness.app())
    letters = reader.read().dead_letters
    assert (letters.open, letters.by_reason) == (1, {"unreadable": 1})
    assert letters.latest[0].manifest_id == "bad"
    harness.store.put(reason, whole)
    assert reader.read().dead_letters.by_reason == {"not_json": 1}


def test_the_latest_dead_letters_come_first() -> None:
    """Of the dead letters the latest are named, the latest first, whatever their ids."""
    harness = Harness()
    for manifest_id in ("b", "c", "a"):
        harness.put_manifest(f"{manifest_id}.json", b"{")
        harness.run_once()
        harness.clock.advance(60)
    assert [letter.manifest_id for letter in status(harness).dead_letters.latest] == ["a", "c", "b"]


def test_running_jobs() -> None:
    """A job is shown while it sends heartbeats, and that it was asked to stop."""
    harness = Harness()
    app = harness.app()
    with app.heartbeat:
        assert [run.run_id for run in status(harness).runs] == [app.run_id]
        assert status(harness).state.word == "idle"
        app.runs.ask_to_stop(app.run_id)
        found = status(harness)
        assert (found.state.word, found.runs[0].asked_to_stop_at) == ("stopping", harness.clock.now())
    assert status(harness).runs == ()


def test_job_that_died() -> None:
    """Work that waits for a job which ended without a word is shown as that."""
    harness = Harness()
    app = harness.app()
    app.heartbeat._write_heartbeat()
    harness.clock.advance(120)
    harness.deliver("m", GOOD)
    found = status(harness)
    assert (found.state.word, found.last_heartbeat_at) == ("stopped", harness.clock.now() - timedelta(seconds=120))
    assert "the job died: its last heartbeat is 2 min old" in found.state.reason


def test_bytes_of_many_manifests_are_extrapolated() -> None:
    """Of more manifests than are read at once, the bytes come from a sample, and it is said so."""
    harness = Harness()
    for number in range(MANIFESTS_READ + 100):
        harness.deliver(f"m{number:03d}", GOOD)
    backlog = status(harness).backlog
    assert (backlog.manifests, backlog.is_extrapolated) == (MANIFESTS_READ + 100, True)
    assert 0 < backlog.manifests_read <= MANIFESTS_READ
    assert backlog.input_bytes == pytest.approx((MANIFESTS_READ + 100) * len(GOOD), rel=0.01)


def test_manifests_that_are_not_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that will be a dead letter has no bytes to wait for; a very long one is not read, but extrapolated."""
    harness = Harness()
    harness.put_manifest("bad.json", b"{")
    backlog = status(harness).backlog
    assert (backlog.manifests_read, backlog.input_bytes, backlog.is_extrapolated) == (1, 0, False)
    uri = harness.deliver("m", GOOD)
    [info] = [each for each in harness.store.list(harness.layout.manifests_folder) if each.uri == uri]
    monkeypatch.setattr("compactor.ops.status.reading.READ_MAX_BYTES", info.size_bytes - 1)
    backlog = status(harness).backlog
    assert (backlog.manifests_read, backlog.is_extrapolated) == (1, True)


def test_the_first_that_was_begun() -> None:
    """The manifest that was begun first is named, whatever its id."""
    harness = Harness()
    for manifest_id in ("z", "a"):
        harness.ledger.open(ManifestKey(DAY, manifest_id))
        harness.clock.advance(30)
    backlog = status(harness).backlog
    assert (backlog.begun_manifests, backlog.oldest_begun, backlog.oldest_begun_seconds) == (2, "z", 60)


def test_a_rebuild_that_decided_nothing(harness: Harness) -> None:
    """No job goes on with it, so none is missed; but its date is not closed, which a person has to know."""
    with pytest.raises(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(CrashPoint.OPENED))
    soon = status(harness)
    assert (soon.backlog.begun_manifests, soon.backlog.undecided_rebuilds, soon.state.condition) == (0, 1, "all_done")
    harness.clock.advance(7200)
    late = status(harness).state
    assert (late.word, late.next_move) == ("needs_you", "compactor rebuild --manifest m1")
    rebuild(harness, "m1", force=True)
    assert status(harness).backlog.undecided_rebuilds == 0


def crowded(harness: Harness, times: int) -> None:
    """Waiting manifests, dead letters and commits, each of them so many times as are read."""
    for number in range(RECENT_SLOTS):
        harness.deliver(f"done{number}", GOOD)
    for number in range(times * LETTERS_READ):
        harness.put_manifest(f"bad{number}.json", b"{")
    harness.run_once()
    for number in range(times * MANIFESTS_READ):
        harness.deliver(f"waits{number:04d}", GOOD)


def test_a_reading_is_bounded() -> None:
    """However much waits or is a dead letter, a reading is bounded; the next one reads no manifest that still waits."""
    asked = []
    for times in (1, 2):
        harness = Harness()
        crowded(harness, times)
        store = FaultyStore(harness.store)
        reader = operating.status_reader(harness.app(store=store))
        reader.read()
        asked.append(store.calls["any"])
        reader.read()
        asked.append(store.calls["any"] - asked[-1])
    assert asked[0] == asked[2] <= MANIFESTS_READ + RECENT_SLOTS + 3 * LATENCY_COMMITS + 5 * LETTERS_READ + 20
    assert asked[1] == asked[3] <= asked[0] - MANIFESTS_READ


def test_a_transient_error_is_an_error() -> None:
    """A store that is away is an error, not an empty place."""
    harness = Harness()
    store = FaultyStore(harness.store)
    store.unavailable_at(1, "list")
    with pytest.raises(StoreUnavailable):
        status(harness, store)


def test_a_job_on_s3_is_on_glue() -> None:
    """Where the state is in S3 the next move is the control plane's."""
    harness = Harness(root="s3://lake")
    harness.deliver("m", GOOD)
    found = status(harness).state
    assert (found.word, found.next_move[:29]) == ("stopped", "compactor job check --dry-run")


def test_a_manifest_arrives_once() -> None:
    """A manifest that is committed and not yet out of the watched prefix is not counted twice among what arrives."""
    harness = Harness()
    uri = harness.deliver("m", GOOD)
    delivered = harness.store.read(uri)
    harness.run_once()
    harness.clock.advance(10)
    before = status(harness).rates.arriving_bytes_per_second
    harness.store.put(uri, delivered)
    assert status(harness).rates.arriving_bytes_per_second == before > 0
