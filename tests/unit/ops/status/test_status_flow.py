"""What arrives against what is processed, time to drain, and latency."""

from dataclasses import replace

import pytest

from compactor.core.documents.records import RecentCommit
from compactor.ledger.backlog import Backlog
from compactor.ledger.sizing import SizedBytes
from compactor.ops.status.values import WINDOW_SECONDS, OutputSizes, Rates, drain, output_sizes, rates, rejects
from tests.support.statuses import NOW, ago, commit

WAITING = Backlog(manifests=10, manifests_read=10, input_bytes=6_000, oldest_seconds=60.0)
KNOWN = Rates(900, 10, 20, 30)


def done(seconds_ago: float, *, arrived: float | None = None, length: int = 900) -> RecentCommit:
    """A commit of ten seconds of work."""
    changes = {"input_bytes": length, "seconds": 10.0, "arrived_at": None if arrived is None else ago(arrived)}
    return commit(1, seconds_ago).model_copy(update=changes)


def test_rates_over_the_last_while() -> None:
    """Rates count what came and what was committed in the window; older commits give the rate at work."""
    recent = [done(5_000, arrived=5_020), done(800, arrived=1_000), done(100, arrived=200)]
    found = rates(recent, [(ago(50), 1_800.0), (ago(2_000), 10**6)], NOW, slots=64)
    assert found == Rates(WINDOW_SECONDS, (900 + 1_800) / 900, 1_800 / 900, 2_700 / 30)


def test_window_shrinks_with_the_ring() -> None:
    """Where all places are taken, the window is what the summaries reach back to: earlier commits are not on record."""
    recent = [done(100, arrived=130), done(50, arrived=90), done(0, arrived=60)]
    found = rates(recent, [(ago(95), 500.0), (ago(120), 500.0)], NOW, slots=3)
    assert (found.window_seconds, found.processed_bytes_per_second) == (100, 18)
    assert found.arriving_bytes_per_second == (900 + 900 + 500) / 100


def test_unknown_arrival() -> None:
    """A manifest whose creation is unknown counts as arrived when the work on it began."""
    assert rates([done(895)], [], NOW, slots=64).arriving_bytes_per_second == 0
    assert rates([done(885)], [], NOW, slots=64).arriving_bytes_per_second == 1


def test_rates_of_nothing() -> None:
    """Before the first commit no speed is known, and that is not zero."""
    assert rates([], [], NOW, slots=64) == Rates(WINDOW_SECONDS, 0, 0, None)


@pytest.mark.parametrize(
    ("backlog", "known", "is_running", "seconds", "is_never", "reason"),
    [
        (Backlog(), KNOWN, False, 0.0, False, "nothing waits"),
        (WAITING, KNOWN, True, 300.0, False, "the rate at work"),
        (WAITING, KNOWN, False, None, True, "no job runs"),
        (WAITING, replace(KNOWN, arriving_bytes_per_second=30), True, None, True, "more arrives"),
        (WAITING, replace(KNOWN, at_work_bytes_per_second=None), True, None, False, "nothing was committed so far"),
        (replace(WAITING, input_bytes=None), KNOWN, True, None, False, "no waiting manifest could be read"),
        (
            replace(WAITING, oldest_seconds=900),
            replace(KNOWN, processed_bytes_per_second=0),
            True,
            None,
            True,
            "lately",
        ),
        (WAITING, replace(KNOWN, processed_bytes_per_second=0), True, 300.0, False, "the rate at work"),
    ],
)
def test_drain(
    backlog: Backlog, known: Rates, is_running: bool, seconds: float | None, is_never: bool, reason: str
) -> None:
    """Backlog over net rate; `never` and `unknown` are told apart."""
    found = drain(backlog, known, is_running=is_running)
    assert (found.seconds, found.is_never, reason in found.reason) == (seconds, is_never, True)


def test_rejects() -> None:
    """Rejected lines are summed by reason."""
    found = rejects([commit(1, 0), commit(2, 0)])
    assert (found.commits, found.lines, found.by_reason) == (2, 3, {"invalid_json": 3})


def sized(target: int | None, right_sized: int | None, small: int | None, length: int = 1000) -> RecentCommit:
    """A commit that recorded sizes, or did not."""
    sizes = {"target_file_bytes": target, "right_sized_bytes": right_sized, "small_bytes": small}
    return commit(1, 0).model_copy(update={"output_bytes": length, **sizes})


def test_hit_rate_by_bytes() -> None:
    """It is of commits that recorded the target of the settings; what others would tell is unknown, and not 0."""
    known = [sized(100, 900, 0), sized(100, 0, 1000), sized(100, 0, 0, length=0)]
    others = [sized(None, None, None), sized(50, 1000, 0)]
    expected = OutputSizes(100, 3, SizedBytes(2000, right_sized_bytes=900, small_bytes=1000, hit_rate=0.45))
    assert output_sizes([*known, *others], 100) == expected
    assert output_sizes(others, 100) == output_sizes([], 100) == OutputSizes(100, 0, None)
    assert output_sizes(known[2:], 100).by_bytes == SizedBytes(0, 0, 0, hit_rate=None)
