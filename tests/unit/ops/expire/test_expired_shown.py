"""What expired is told by `status` and `report` as `verify` tells it."""

from datetime import timedelta

import pytest

from compactor.cli.commands.report import make_report
from compactor.cli.ui.status_screen import fields
from compactor.cli.ui.words import expired_lines
from compactor.core.crash_points import ChangeCrashPoint
from compactor.core.documents.changes import Why
from compactor.cost.prices import CLASSIC
from compactor.ledger.visible import ExpiredSeen
from compactor.ops.report.period import Period
from compactor.upkeep.expiring import Expirer
from compactor.wiring import operating
from tests.support.expiring import LATER_DAY, NEXT_DAY, closed_days, expire
from tests.support.harness import DAY, DiedError, Harness


def seen(harness: Harness) -> ExpiredSeen:
    """What the three commands say, which has to be the same."""
    app, verified = harness.app(), harness.verification()
    now = harness.clock.now()
    period = Period(now - timedelta(hours=1), now)
    reported = make_report(app, period, CLASSIC, is_job_named=False, with_samples=False).figures.expired
    status = operating.status_reader(app).read()
    assert status.expired == reported
    assert (status.expired.expired_dates, status.expired.expiring) == (verified.expired_dates, verified.expiring)
    shown = [lines for name, lines, _ in fields(status) if name == "expired"]
    assert shown == ([expired_lines(status.expired)] if status.expired else [])
    return status.expired


def test_dates_and_counts_of_each_rule() -> None:
    """How many dates, which, and when; nothing where nothing expired, and foreign objects are passed over."""
    harness = closed_days()
    harness.store.put(harness.layout.changes_folder(Why.DATE) + "readme.txt", b"")
    assert not seen(harness)
    expire(harness, LATER_DAY)
    harness.clock.advance(86_400)
    Expirer(state=harness.app().state).expire(Why.ARCHIVE, NEXT_DAY, "n", "a rule", {"m3": 1})
    found, today = seen(harness), harness.clock.now()
    assert (found.expired_dates, found.expiring) == (2, 0)
    assert expired_lines(found) == [
        f"whole dates: 2 dates ({DAY} to {NEXT_DAY}), last on {today - timedelta(days=1):%Y-%m-%d}",
        f"archive: 1 date ({NEXT_DAY}), on {today:%Y-%m-%d}",
    ]


def test_a_deletion_that_is_not_finished() -> None:
    """It is told until another call finishes it, also before its record takes effect."""
    for step, retired in ((ChangeCrashPoint.BEGUN, 0), (ChangeCrashPoint.RECORDED, 1)):
        harness = closed_days()

        def die(found: ChangeCrashPoint, _date: str, step: ChangeCrashPoint = step) -> None:
            if found is step:
                raise DiedError

        with pytest.raises(DiedError):
            expire(harness, on_crash_point=die)
        found = seen(harness)
        assert (found.expired_dates, found.expiring) == (retired, 1)
        assert (
            expired_lines(found)[-1] == "1 deletion not finished; `compactor data clean` or `data expire` finishes them"
        )
        expire(harness)
        assert (seen(harness).expired_dates, seen(harness).expiring) == (1, 0)
