"""Whatever happens before, while and after dates are closed: the answers are those of a reading of all records."""

import pytest

from tests.support.histories import History, answer, verified

STEPS = 30


def check(history: History) -> None:
    """By the summaries, `verify` says what it says by all records."""
    assert answer(verified(history.harness)) == answer(verified(history.harness, by_records=True))


@pytest.mark.parametrize("seed", range(3))
def test_summaries_change_no_answer(seed: int) -> None:
    """After each of many random things, also deaths and races of closings."""
    history = History(seed, check)
    history.run(STEPS)
    history.finish()
    assert verified(history.harness).closed_dates > 1
