"""What the threads of `verify` share."""

import time

import pytest

from compactor.ledger.state import State
from compactor.ledger.visible import Visible
from compactor.ops.verify import files
from compactor.wiring import operating
from tests.support.harness import GOOD, Harness


def test_all_threads_share_what_expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults of records that one thread reads are in the report: all of them ask one object, with each Python."""
    harness = Harness()
    for number in range(4):
        harness.deliver(f"m{number}", GOOD)
    harness.run_once()
    made = list[Visible]()

    def slow(state: State) -> Visible:
        time.sleep(0.02)
        made.append(Visible(state))
        return made[-1]

    monkeypatch.setattr(files, "Visible", slow)
    for number in range(4):
        harness.store.delete([each.final for each in harness.commit(f"m{number}").outputs])
    verifier = operating.verifier(harness.app())
    assert verifier.verify_all().manifests == 4
    assert len(made) == 1
