"""Whatever happens before, while and after dates are closed: the answers are those of a reading of all records."""

import pytest

from compactor.ledger.accounts import reading as kept_letters_module
from compactor.ledger.accounts.account import Kind
from tests.support.histories import History, answer, letters, redrivable, rejected, reported, unclosed, verified

STEPS = 30
FEW_STEPS = 12

KINDS: tuple[Kind, ...] = ("manifests", "files", "rejects")


def check(history: History) -> None:
    """By the summaries, `verify`, `report`, `status`, `rejects` and the undated `redrive` say what all records say."""
    harness = history.harness
    found = answer(verified(harness)), reported(harness), {kind: redrivable(harness, kind) for kind in KINDS}
    rest = letters(harness), rejected(harness)
    with unclosed(harness):
        assert answer(verified(harness)) == found[0]
        assert reported(harness) == found[1]
        assert {kind: redrivable(harness, kind) for kind in KINDS} == found[2]
        kept, open_letters = letters(harness)
        assert kept == rest[0][0]
        # Without summaries `status` looks for what took files over among the latest commits only.
        assert rest[0][1] <= open_letters
        assert rejected(harness) == rest[1]


@pytest.mark.parametrize("steps", [FEW_STEPS, pytest.param(STEPS, marks=pytest.mark.full)])
@pytest.mark.parametrize(("seed", "asked_for", "page_objects"), [(0, 20, 1000), (1, 0, 1000), (2, 0, 1)])
def test_summaries_change_no_answer(
    seed: int, asked_for: int, page_objects: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each of many random things, also deaths and races of closings, however dead letters are found."""
    monkeypatch.setattr(kept_letters_module, "ASKED_FOR", asked_for)
    monkeypatch.setattr(kept_letters_module, "PAGE_OBJECTS", page_objects)
    history = History(seed, check)
    history.run(steps)
    history.finish()
    assert verified(history.harness).closed_dates > 1
