"""Whatever reads the ledger goes by the commit of the last rebuild, and counts a rebuilt manifest once."""

from datetime import timedelta

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.layout import ManifestKey
from compactor.job.publication import Publisher
from compactor.ops.report.period import Period
from compactor.ops.trace.trace import TraceState
from compactor.wiring import operating
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.rebuilding import rebuild
from tests.support.report_day import report_on

M1 = ManifestKey(DAY, "m1")
AFTER_DECISION = [*CrashPoint][[*CrashPoint].index(CrashPoint.DECIDED) :]


def damaged() -> Harness:
    """A done manifest, two of whose outputs hold rows of others."""
    harness = Harness()
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    first, second, *_ = harness.commit("m1").outputs
    harness.store.put(first.final, harness.store.read(second.final) + b" ")
    harness.store.copy(harness.commit("m1").rejects[0].final, second.final)
    return harness


@pytest.mark.parametrize("step", AFTER_DECISION)
def test_verify_beside_a_rebuild(step: CrashPoint) -> None:
    """From the decision on, verify reports a manifest that is not done yet, and no difference."""
    harness = damaged()

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == step:
            raise DiedError

    with pytest.raises(DiedError):
        rebuild(harness, on_crash_point=die)
    found = harness.verification()
    is_done = AFTER_DECISION.index(step) >= AFTER_DECISION.index(CrashPoint.DONE)
    assert (found.discrepancies, found.unfinished) == ([], 0 if is_done else 1)
    trace = operating.tracer(harness.app()).trace_manifest("m1")
    assert trace.state is (TraceState.DONE if is_done else TraceState.DECIDED)
    assert trace.outputs == [file.final for file in harness.commit("m1").outputs]
    assert [each.manifest_id for each in rebuild(harness).rebuilt] == ([] if is_done else ["m1"])
    harness.check_exact()


@pytest.mark.parametrize("name", ["outcome.json", "outcome-2.json", "done-2.json", "attempt-2.json"])
def test_records_of_a_rebuild_are_verified(name: str) -> None:
    """A record of a rebuild, or of what it superseded, that is gone or damaged is a discrepancy."""
    harness = damaged()
    rebuild(harness)
    uri = harness.layout.ledger_records(M1) + name
    kept = harness.store.read(uri)
    harness.store.put(uri, b"{")
    assert uri in {each.where for each in harness.verification().discrepancies}
    harness.store.delete([uri])
    assert harness.verification().discrepancies
    harness.store.put(uri, kept)
    assert harness.verification().discrepancies == []


def test_report_and_status() -> None:
    """A rebuild adds no rows to the figures of a report, to the metrics or to the latest commits."""
    harness = damaged()
    recent, emitted = harness.ledger.recent(), len(harness.metrics.emitted)
    moment = harness.clock.now()
    day = Period(moment - timedelta(days=1), moment + timedelta(days=1))
    totals = report_on(harness, day).figures.totals
    assert totals.rows == 4
    harness.clock.advance(3600)
    rebuild(harness)
    assert (harness.ledger.recent(), len(harness.metrics.emitted)) == (recent, emitted)
    assert report_on(harness, day).figures.totals == totals
    later = Period(day.until, day.until + timedelta(days=1))
    harness.clock.advance(24 * 3600)
    assert len(rebuild(harness, "m1", force=True).rebuilt) == 1
    assert report_on(harness, later).figures.totals.rows == 0


def test_trace_of_a_lost_output() -> None:
    """The trace of an output that is gone says how to get it back."""
    harness = damaged()
    uri = harness.commit("m1").outputs[2 - 1].final
    harness.store.delete([uri])
    assert operating.tracer(harness.app()).trace(uri).next_moves[0] == "compactor rebuild --manifest m1"
    rebuild(harness)
    assert "compactor rebuild --manifest m1" not in operating.tracer(harness.app()).trace(uri).next_moves


@pytest.mark.parametrize("generation", [1, 2], ids=["the first commit", "a rebuild"])
def test_a_rebuild_stays_open(generation: int) -> None:
    """A job that cleans up after an earlier commit leaves a rebuild in the index from which recovery takes it."""
    harness = damaged()
    if generation > 1:
        rebuild(harness)
    accepted = harness.ledger.accepted("m1")
    assert accepted is not None
    assert harness.commit("m1").generation == generation

    def clean_up_and_die(found: CrashPoint, _manifest_id: str) -> None:
        if found == CrashPoint.OPENED:
            Publisher(harness.app().state).clean_up(accepted, harness.commit("m1"))
        if found == CrashPoint.DECIDED:
            raise DiedError

    with pytest.raises(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=clean_up_and_die)
    harness.run_once()
    assert harness.ledger.is_done(M1, generation + 1)
    assert list(harness.ledger.open_ids()) == []
    harness.check_exact()


@pytest.mark.parametrize("attempt", [0, 7])
def test_an_abandoned_rebuild(attempt: int) -> None:
    """A rebuild that died undecided leaves the index when its manifest is found to be intact an hour later."""
    harness = damaged()
    rebuild(harness)
    harness.ledger.open(M1, 3, attempt)
    assert rebuild(harness).intact == 1
    assert list(harness.ledger.open_ids()) == ["m1"]
    harness.clock.advance(3600)
    assert rebuild(harness).intact == 1
    assert list(harness.ledger.open_ids()) == []
    harness.check_exact()


def test_retention() -> None:
    """Staging of a rebuild that is decided stays until it is done; an archived manifest may go after it."""
    harness = damaged()

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == CrashPoint.DECIDED:
            raise DiedError

    with pytest.raises(DiedError):
        rebuild(harness, on_crash_point=die)
    harness.clock.advance(3 * 24 * 3600)
    keep = operating.cleaner(harness.app()).retention
    harness.store.delete([uri for uri, _, _ in harness.ledger.open_rebuilds("m1")])
    assert keep.why_keep_staged("m1") == "its commit is not done"
    archived = harness.layout.archived_manifest(M1)
    assert keep.why_keep_archived(archived) == "its commit is not done"
    rebuild(harness)
    assert (keep.why_keep_staged("m1"), keep.why_keep_archived(archived)) == ("", (M1, 2))
    harness.check_exact()
