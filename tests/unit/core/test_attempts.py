"""Which attempts count against a manifest, when it is tried again, and beside what."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.records import Attempt, AttemptFailure, AttemptsFolded
from compactor.core.rules.attempts import (
    Attempts,
    AttemptState,
    Lane,
    RetryRules,
    due_at,
    held_against,
    lane,
    last_error,
    telling_error,
)

ME = "run-1"
NOW = datetime(2026, 1, 2, tzinfo=UTC)
RULES = RetryRules(3, 1.0, 600.0)
ENDS = {
    "failed": {"passing": False},
    "passing": {"passing": True},
    "undecided": {"passing": True, "undecided": True},
    "died": {"passing": True, "died": True},
    "blamed": {"passing": False, "died": True},
    "died and undecided": {"passing": True, "died": True, "undecided": True},
    "refused": {"passing": True, "undecided": True, "refused": True},
    "isolate": {"passing": True, "needs_isolation": True},
}


def attempt(
    end: str, *, run_id: str = ME, alone: bool = False, number: int = 1, after: bool = False, tested: bool = False
) -> AttemptState:
    begun = Attempt(
        manifest_id="m",
        number=number,
        run_id=run_id,
        alone=alone,
        after_progress=after,
        after_self_test=tested,
        started_at=NOW,
    )
    if end == "silent":
        return AttemptState(begun, None)
    moment = NOW + timedelta(minutes=number)
    return AttemptState(
        begun, AttemptFailure(manifest_id="m", number=number, error=f"e{number}", failed_at=moment, **ENDS[end])
    )


def attempts(*ends: str) -> Attempts:
    return Attempts(tuple(attempt(end, number=number) for number, end in enumerate(ends, start=1)))


@pytest.mark.parametrize(
    ("end", "run_id", "alone", "held"),
    [
        ("failed", ME, False, 1),
        ("failed", "gone", True, 1),
        ("passing", ME, True, 0),
        ("undecided", ME, False, 1),
        ("died", "gone", True, 0),
        ("blamed", "gone", False, 1),
        ("silent", ME, True, 0),  # this very run goes on
        ("silent", "gone", False, 0),  # its neighbour may have killed the run
        ("silent", "gone", True, 1),
    ],
)
def test_one_attempt(end: str, run_id: str, alone: bool, held: int) -> None:
    """What is recorded as the manifest's fault counts, and so does a death alone, once others got through."""
    found = Attempts((attempt(end, run_id=run_id, alone=alone),))
    assert held_against(found, {ME}) == (0 if end in {"undecided", "silent"} else held)
    assert held_against(found, {ME}, others_got_through=True) == held


def test_an_undecided_failure_counts_once_others_got_through() -> None:
    """Commits of others before the next attempt, or before now after the last one, decide against the manifest."""
    states = [attempt("undecided", number=number, after=number == 3) for number in (1, 2, 3)]
    assert held_against(Attempts(tuple(states)), {ME}) == 1  # the second one, after which others got through
    assert held_against(Attempts(tuple(states)), {ME}, others_got_through=True) == 2
    assert held_against(attempts("passing"), {ME}, others_got_through=True) == 0


@pytest.mark.parametrize("end", ["undecided", "died and undecided"])
@pytest.mark.parametrize(
    ("alone", "before", "after", "held"),
    [(True, True, True, 1), (False, True, True, 0), (True, False, True, 0), (True, True, False, 0)],
)
def test_an_attempt_alone_between_two_self_tests_tells(
    end: str, alone: bool, before: bool, after: bool, held: int
) -> None:
    """Where no other manifest gets through, the job's own sample before and after a failure tells, and nothing less."""
    found = Attempts((attempt(end, alone=alone, tested=before),))
    assert held_against(found, {ME}, self_test_passed=after) == held
    later = Attempts((*found.unfolded, attempt("passing", number=2, tested=after)))
    assert held_against(later, {ME}) == held


def test_a_self_test_tells_nothing_of_refused_input() -> None:
    """The right to read the job's own sample is another one."""
    state = attempt("refused", alone=True, tested=True)
    assert held_against(Attempts((state,)), {ME}, self_test_passed=True) == 0
    assert held_against(Attempts((state,)), {ME}, others_got_through=True) == 1


def test_folded_attempts_count_on() -> None:
    """The sum of folded attempts is added to those with records of their own."""
    folded = AttemptsFolded(
        manifest_id="m", upto=7, failures=5, held=1, deaths=2, last_error="e7", first_started_at=NOW, folded_at=NOW
    )
    only = Attempts((), folded)
    more = Attempts((attempt("failed", number=8),), folded)
    assert (only.last_number, only.failures, only.deaths, last_error(only)) == (7, 5, 2, "e7")
    assert (more.last_number, more.failures, held_against(more, {ME})) == (8, 6, 2)
    assert lane(only, 1, RULES) is Lane.ALONE


@pytest.mark.parametrize(
    ("ends", "held", "expected"),
    [
        ((), 0, Lane.FRESH),
        (("failed",), 1, Lane.AGAIN),
        (("failed", "failed"), 2, Lane.AGAIN),  # it takes no driver along
        (("died",), 0, Lane.AGAIN),
        (("died", "died"), 0, Lane.ALONE),
        (("undecided",), 0, Lane.AGAIN),
        (("undecided", "undecided"), 0, Lane.UNDECIDED),  # the next may be the last
        (("undecided",), 1, Lane.UNDECIDED),
        (("undecided", "undecided", "passing"), 0, Lane.AGAIN),
        (("undecided", "refused"), 0, Lane.AGAIN),  # alone or not, it tells nothing
        (("blamed", "died"), 1, Lane.ALONE),
        (("blamed", "blamed"), 2, Lane.ALONE),  # its last attempt must prove it
        (("isolate",), 0, Lane.ALONE),
        (("isolate", "passing"), 0, Lane.AGAIN),
        (("failed", "passing"), 1, Lane.AGAIN),
    ],
)
def test_lane(ends: tuple[str, ...], held: int, expected: Lane) -> None:
    """What killed drivers is kept apart, and the attempt that may be the last of a killer runs with nothing else."""
    assert lane(attempts(*ends), held, RULES) is expected
    if expected is Lane.UNDECIDED:
        assert lane(attempts(*ends), held, RULES, others_got_through=True) is Lane.AGAIN


def test_pauses() -> None:
    """The pause doubles with each failure up to its bound, and begins at the last one; a first death costs no pause."""
    assert due("m", Attempts()) is None
    assert due("m", attempts("died", "silent")) is None
    for failures in (1, 2, 5, 30):
        moment = due("m", attempts(*["passing"] * failures))
        assert moment is not None
        whole = min(600.0, 2.0 ** (failures - 1))
        assert whole / 2 <= (moment - NOW - timedelta(minutes=failures)).total_seconds() <= whole
    assert due("m", attempts("passing", "died")) == due("m", attempts("passing"))
    assert due("m", attempts("passing")) != due("n", attempts("passing"))


def test_pauses_after_deaths() -> None:
    """After more than one death a pause begins with each run, so that others get through in it; it doubles as well."""
    for deaths in (2, 3, 6):
        began_at = NOW + timedelta(hours=1)
        moment = due_at("m", attempts(*["died"] * deaths), RULES, run_began_at=began_at)
        assert moment is not None
        whole = 2.0 ** (deaths - 2)
        assert whole / 2 <= (moment - began_at).total_seconds() <= whole
    blamed = due("m", attempts("died and undecided"))
    assert blamed is not None
    assert blamed > NOW + timedelta(minutes=1)


def test_a_failure_from_the_future() -> None:
    """A clock that was ahead recorded it: the next attempt does not wait until then, and later failures count."""
    recorded = attempts("passing", "passing")  # a minute after the other
    assert due_at("m", recorded, RULES, now=NOW) == due("m", recorded)
    years_before = NOW - timedelta(days=3650)
    assert due_at("m", recorded, RULES, now=years_before) is None
    between = NOW + timedelta(minutes=1) - timedelta(seconds=RULES.longest_pause_seconds)
    moment = due_at("m", attempts("passing", "passing", "passing"), RULES, now=between)
    assert moment is not None
    assert moment < NOW + timedelta(minutes=2), "it counts from the failure that may be true"


def test_a_run_that_began_in_the_future() -> None:
    """Its clock was ahead when it began: what may have killed others waits no longer for it than for any run."""
    recorded = attempts("died", "died", "died")
    now = NOW + timedelta(minutes=5)
    ahead = due_at("m", recorded, RULES, now=now, run_began_at=now + timedelta(days=365))
    assert ahead == due_at("m", recorded, RULES, now=now)
    begun = due_at("m", recorded, RULES, now=now, run_began_at=now)
    assert begun is not None
    assert begun > now


def due(manifest_id: str, found: Attempts) -> datetime | None:
    return due_at(manifest_id, found, RULES, run_began_at=NOW)


@given(st.lists(st.sampled_from([*ENDS, "silent"]), max_size=8), st.booleans(), st.booleans())
def test_bounds(ends: list[str], progress: bool, tested: bool) -> None:
    """Never more attempts count than there were, and passing trouble alone never counts."""
    found = attempts(*ends)
    held = held_against(found, {ME}, others_got_through=progress, self_test_passed=tested)
    assert 0 <= held <= len(ends)
    if set(ends) <= {"passing", "died", "isolate", "silent"}:
        assert held == 0
    certain = sum(end in {"failed", "blamed"} for end in ends)
    assert held >= certain
    assert held == certain or progress  # none of them was alone


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ((), "never attempted"),
        ((attempt("failed", number=2), attempt("silent", number=1)), "e2"),
        ((attempt("silent", run_id="r", number=10),), "run r ended without a record of its failure in attempt 10"),
    ],
)
def test_last_error(states: tuple[AttemptState, ...], text: str) -> None:
    """The last attempt is the one with the highest number."""
    assert last_error(Attempts(states)) == text


@pytest.mark.parametrize(
    ("ends", "error", "refused"),
    [
        (("refused", "refused", "died"), "e2", True),
        (("refused", "silent"), "e1", True),
        (("refused", "failed"), "e2", False),
        (("died", "blamed"), "e2", False),
        (("refused", "refused", "passing"), "e2", True),
        (("passing", "passing"), "e2", False),
        (("died", "silent"), "run run-1 ended without a record of its failure in attempt 2", False),
    ],
)
def test_the_telling_error_is_the_manifests_own(ends: tuple[str, ...], error: str, refused: bool) -> None:
    """What a manifest itself failed for is its reason, though a driver died or met passing trouble in it later."""
    assert telling_error(attempts(*ends)) == (error, refused)
