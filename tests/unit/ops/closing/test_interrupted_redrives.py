"""A redrive that died when it was on record is found again, also if its date was closed meanwhile."""

import pytest

from compactor.core.crash_points import RedriveCrashPoint
from compactor.ledger.accounts.account import Kind
from compactor.ledger.history.closed_dates import ClosedDates
from tests.support.harness import DiedError
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, answer, closed, verified
from tests.support.redriving import CASES, check, each_kind, new_harness, redrive


@each_kind
def test_an_interrupted_redrive_of_a_closed_date_is_found_again(kind: Kind) -> None:
    """The summary names what was redriven until the redrive is accepted; from then on it need not."""
    harness = new_harness()
    CASES[kind](harness)

    def die(point: RedriveCrashPoint, _manifest_id: str) -> None:
        if point is RedriveCrashPoint.RECORDED:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(harness, kind, on_crash_point=die)
    for healed in (1, 0):
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        assert len(closed(harness).summarised) == 1
        assert answer(verified(harness)) == answer(verified(harness, by_records=True))
        assert len(redrive(harness, kind).healed) == healed
        harness.run_once()
    totals = ClosedDates(harness.store, harness.layout).totals()
    assert (totals.letters, totals.quarantined) == ([], [])
    check(harness, kind)
