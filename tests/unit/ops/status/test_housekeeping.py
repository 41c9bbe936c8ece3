"""What jobs do beside their work, and what fails of it: `status` and the report tell, in the same words."""

from datetime import timedelta

from compactor.cli.commands.report import make_report
from compactor.control.diagnosis.health import Condition
from compactor.core.errors import AccessError
from compactor.cost.prices import CLASSIC
from compactor.ledger.housekeeping import REPORTED_FOR, FailingTask, TaskNote
from compactor.ops.report.period import Period
from compactor.wiring import operating
from tests.support.harness import GOOD, Harness

HOUR = timedelta(hours=1)


def last_upkeep(harness: Harness) -> TaskNote:
    return TaskNote(harness.app().state, "table maintain")


def fail_twice(harness: Harness) -> None:
    for _ in range(2):
        last_upkeep(harness).failed(AccessError("denied"))
        harness.clock.advance(HOUR.total_seconds())


def told(harness: Harness) -> tuple[FailingTask, ...]:
    return operating.status_reader(harness.app()).read().housekeeping


def test_upkeep_that_keeps_failing() -> None:
    """It is told with the time of the first failure and the error of the last, until it finishes."""
    harness = Harness(table={})
    harness.deliver("m1", GOOD)
    harness.run_once()
    last, began = last_upkeep(harness), harness.clock.now()
    last.finished()
    assert told(harness) == ()
    for what in ("first", "second"):
        assert told(harness) == (), "what is over by the next call is not told"
        last.failed(AccessError(f"the {what} call was denied"))
        harness.clock.advance(HOUR.total_seconds())
    with harness.app().heartbeat:
        status = operating.status_reader(harness.app()).read()
    assert [(each.name, each.failing_since) for each in status.housekeeping] == [("table maintain", began)]
    since = f"table maintain has failed since {began:%Y-%m-%d %H:%M} UTC"
    assert status.state.reason == f"{since}: the second call was denied"
    assert (status.state.condition, status.state.severity) == (Condition.HOUSEKEEPING_FAILS, "look")
    now = harness.clock.now()
    made = make_report(harness.app(), Period(now - 3 * HOUR, now), CLASSIC, is_job_named=False, with_samples=False)
    assert [(point.name, point.reason) for point in made.verdict.points] == [
        ("housekeeping_fails_table_maintain", status.state.reason)
    ]
    earlier = Period(now - 9 * HOUR, now - 5 * HOUR)
    assert not make_report(harness.app(), earlier, CLASSIC, is_job_named=False, with_samples=False).verdict.points
    last.finished()
    assert told(harness) == ()


def test_what_failed_long_ago_and_is_not_tried_any_more() -> None:
    """It was switched off, or no job runs: then there is nothing to fix. A damaged record is written anew."""
    harness = Harness(table={})
    fail_twice(harness)
    assert [each.name for each in told(harness)] == ["table maintain"]
    harness.clock.advance(REPORTED_FOR.total_seconds() + 1)
    assert told(harness) == ()
    harness.store.put(harness.layout.last_run("closing"), b"{")
    assert told(harness) == ()


def test_upkeep_that_no_job_does() -> None:
    """Without a table, or left to a scheduler, it is none of the jobs'."""
    for harness in (Harness(), Harness(table={"maintain_hours": 0.0})):
        fail_twice(harness)
        assert told(harness) == ()


def test_a_clock_that_was_wrong() -> None:
    """A failure from the future is not told of, and no later one takes its time over."""
    harness = Harness(table={})
    last, now = last_upkeep(harness), harness.clock.now()
    for _ in range(2):
        harness.clock.advance(400 * HOUR.total_seconds())
        last.failed(AccessError("denied"))
    harness.clock.advance(-800 * HOUR.total_seconds())
    assert told(harness) == ()
    last.failed(AccessError("denied"))
    harness.clock.advance(HOUR.total_seconds())
    last.failed(AccessError("denied"))
    assert [each.failing_since for each in told(harness)] == [now]
