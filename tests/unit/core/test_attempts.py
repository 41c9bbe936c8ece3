"""Which attempts are held against a manifest."""

from datetime import UTC, datetime

import pytest

from compactor.core.attempts import AttemptState, held_against, is_suspect, last_error
from compactor.core.records import Attempt, AttemptFailure

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ME = "run-2"


def attempt(run_id: str, end: str, *, alone: bool, number: int = 1) -> AttemptState:
    failure = AttemptFailure(
        manifest_id="m", number=number, passing=end == "passing", error=f"e{number}", failed_at=NOW
    )
    begun = Attempt(manifest_id="m", number=number, run_id=run_id, alone=alone, started_at=NOW)
    return AttemptState(begun, None if end == "silent" else failure)


@pytest.mark.parametrize(
    ("run_id", "alone", "end", "held", "suspect"),
    [
        ("run-1", True, "silent", 1, True),
        ("run-1", False, "silent", 0, True),
        ("run-1", True, "failed", 1, True),
        ("run-1", False, "failed", 0, True),
        ("run-1", True, "passing", 0, False),
        ("run-1", False, "passing", 0, False),
        (ME, True, "silent", 0, True),
        (ME, False, "silent", 0, True),
        (ME, True, "failed", 1, True),
        (ME, False, "failed", 0, True),
        (ME, True, "passing", 0, False),
        (ME, False, "passing", 0, False),
    ],
)
def test_one_attempt(run_id: str, alone: bool, end: str, held: int, suspect: bool) -> None:
    """Only a lone attempt counts, and only if it failed for a reason of its own or its driver died of it."""
    states = [attempt(run_id, end, alone=alone)]
    assert (held_against(states, {ME}), is_suspect(states)) == (held, suspect)


def test_many_attempts() -> None:
    """Attempts add up, and one bad one makes a suspect."""
    states = [
        attempt("run-1", "failed", alone=True, number=1),
        attempt("run-1", "passing", alone=True, number=2),
        attempt("run-1", "silent", alone=True, number=3),
    ]
    assert (held_against(states, {ME}), is_suspect(states)) == (2, True)
    assert (held_against([], {ME}), is_suspect([])) == (0, False)


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ([], "never attempted"),
        ([attempt("r", "failed", alone=True, number=2), attempt("r", "silent", alone=True, number=1)], "e2"),
        ([attempt("r", "silent", alone=True, number=10)], "run r ended without a record of its failure in attempt 10"),
    ],
)
def test_last_error(states: list[AttemptState], text: str) -> None:
    """The last attempt by number says how it ended."""
    assert last_error(states) == text
