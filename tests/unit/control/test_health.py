"""The health model: its vocabulary is whole, and each of its limits is exact."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import get_args

import pytest

from compactor.control.diagnosis.health import (
    Condition,
    Severity,
    Word,
    finding,
    is_late,
    lacks_progress,
    most_urgent,
    waiting_work,
)
from compactor.ledger.backlog import Backlog

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
STALL_SECONDS = 3600.0


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def test_every_condition_has_a_meaning() -> None:
    """Each condition has one word, one severity, and a next action if a person has to act; no word is left over."""
    assert {each.word for each in Condition} == set(get_args(Word))
    assert {each.severity for each in Condition} == set(get_args(Severity))
    assert all(each.next_move for each in Condition if each.severity == "act")


def test_conditions_are_in_order_of_their_words() -> None:
    """The words are in the order in which conditions are urgent; `stopped` also says that all is done."""
    words = [condition.word for condition in Condition if condition is not Condition.ALL_DONE]
    rank = {word: at for at, word in enumerate(get_args(Word))}
    shown = [rank[word] for word in words if word != "running"]
    assert all(first <= second for first, second in pairwise(shown))


def test_the_most_urgent_finding() -> None:
    """Of several findings the one whose condition comes first is shown, whatever the order they are found in."""
    urgent, other = finding(Condition.NO_PROGRESS, "a"), finding(Condition.FILES_QUARANTINED, "b")
    assert most_urgent([other, urgent]) == most_urgent([urgent, other]) == urgent


def test_a_finding_in_words() -> None:
    """A finding carries its condition's next action, unless it has its own, and a name that is stable."""
    default, own = finding(Condition.QUEUE_AGE, "late"), finding(Condition.QUEUE_AGE, "late", "wait")
    assert (str(default), str(own)) == ("late; read the builder's log", "late; wait")
    assert str(finding(Condition.IDLE, "nothing waits")) == "nothing waits"
    assert finding(Condition.UNKNOWN, "away", subject="queue").name == "unknown_queue"
    assert (own.name, own.word, own.severity) == ("queue_age", "behind", "look")


@pytest.mark.parametrize(
    ("oldest", "up", "committed", "lacks"),
    [
        (3600, 3600, None, True),
        (3599, 3600, None, False),
        (3600, 3599, None, False),
        (3600, 9000, 3600, True),
        (3600, 9000, 3599, False),
        (3600, 3599, 9000, False),
    ],
)
def test_lack_of_progress(oldest: float, up: float, committed: float | None, lacks: bool) -> None:
    """The oldest manifest, the run and the pause since the last commit all have to be as old as the limit."""
    found = lacks_progress(
        Backlog(1, oldest),
        up_since=ago(up),
        last_commit_at=None if committed is None else ago(committed),
        stall_seconds=STALL_SECONDS,
        now=NOW,
    )
    assert found is lacks


def test_no_progress_is_needed_without_work() -> None:
    """Where nothing waits a run may commit nothing for ever."""
    assert not lacks_progress(Backlog(), up_since=ago(9000), last_commit_at=None, stall_seconds=0.0, now=NOW)


@pytest.mark.parametrize(("oldest", "late"), [(900, True), (899.9, False)])
def test_late(oldest: float, late: bool) -> None:
    """A manifest is late as soon as it has waited for the SLA."""
    assert is_late(Backlog(1, oldest), 900) is late


@pytest.mark.parametrize(
    ("backlog", "words"),
    [
        (None, ""),
        (Backlog(), ""),
        (Backlog(1, 12), "1 manifest waits or is in progress, for 12 s"),
        (Backlog(2000, 12), "2,000 manifests wait or are in progress, the oldest for 12 s"),
        (Backlog(begun_manifests=1), "1 manifest is started and not done"),
        (Backlog(begun_manifests=2), "2 manifests are started and not done"),
    ],
)
def test_waiting_work(backlog: Backlog | None, words: str) -> None:
    """What waits is told in the same words everywhere; nothing is told as nothing."""
    assert waiting_work(backlog) == words
