"""Whatever happens before, while and after dates are closed: the answers are those of a reading of all records."""

import pytest

from compactor.ops.redrive.selection import Kind
from tests.support.histories import History, answer, redrivable, reported, unclosed, verified

STEPS = 30


KINDS: tuple[Kind, ...] = ("manifests", "files", "rejects")


def check(history: History) -> None:
    """By the summaries, `verify`, `report` and the undated `redrive` say what they say by all records."""
    harness = history.harness
    found = answer(verified(harness)), reported(harness), {kind: redrivable(harness, kind) for kind in KINDS}
    with unclosed(harness):
        assert answer(verified(harness)) == found[0]
        assert reported(harness) == found[1]
        assert {kind: redrivable(harness, kind) for kind in KINDS} == found[2]


@pytest.mark.parametrize("seed", range(3))
def test_summaries_change_no_answer(seed: int) -> None:
    """After each of many random things, also deaths and races of closings."""
    history = History(seed, check)
    history.run(STEPS)
    history.finish()
    assert verified(history.harness).closed_dates > 1
