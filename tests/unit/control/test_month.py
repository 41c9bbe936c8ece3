"""Months of the control plane, with crashes, hangs, a bad release and its repair, refusals, throttling and outages."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from compactor.control.diagnosis.alarms import MANY_REFUSALS
from tests.support.glue_service import STARTING_SECONDS, STOPPING_SECONDS
from tests.unit.control.month import DEFINITIONS, Month

FEW = len(DEFINITIONS)
"""For `make test`, one month of each definition."""

LATER_SEEDS = [pytest.param(seed, marks=pytest.mark.full) for seed in range(FEW, 10)]
SEEDS = [*range(FEW), *LATER_SEEDS] if (asked := os.environ.get("MONTHS")) is None else [*range(int(asked))]
"""More months: `MONTHS=200 pytest tests/unit/control/test_month.py`."""

SLACK_SECONDS = 5 * 60  # to see it, for the last heartbeat to age, to act, to start, and for a call that is throttled
BEGAN = STARTING_SECONDS + SLACK_SECONDS
HOUR = timedelta(hours=1)


def bounds(month: Month) -> dict[str, float]:
    """The longest time that each cause may keep the job down, after it could have been cured."""
    policy = month.scene.policy
    backoff, cooldown = policy.backoff_longest_seconds, policy.breaker_cooldown_seconds
    return {
        "first start": BEGAN,
        "restart by Glue": 300 + BEGAN,
        "lost restart": policy.expired_grace_seconds + BEGAN,
        "crash": backoff + BEGAN,
        "crash loop": cooldown + BEGAN,
        "hang": policy.start_grace_seconds + policy.hang_seconds + STOPPING_SECONDS + BEGAN,
        "outage of Glue": backoff + BEGAN,
        "throttling": backoff + BEGAN,
        "refused starts": backoff + BEGAN,
        "deleted job": BEGAN,
        "bad release": BEGAN,  # a repair closes the breaker: no hour until the next trial
        "drain": (policy.expired_grace_seconds if policy.maintenance_window else 0) + BEGAN,
        "timeout": BEGAN,
    }


@pytest.fixture(scope="module", params=SEEDS)
def month(request: pytest.FixtureRequest) -> Month:
    """A month that was lived; its seed chooses also how its runs end."""
    seed = int(request.param)
    made = Month(seed, list(DEFINITIONS)[seed % len(DEFINITIONS)])
    made.live()
    return made


def test_every_outage_ends_in_time(month: Month) -> None:
    """After what kept the job down is over, it is back at work within the policy's time for each cause."""
    allowed = bounds(month)
    assert month.outage is None
    for cause, seconds in month.account.longest_seconds.items():
        assert seconds <= allowed[cause], cause


def test_there_is_never_a_second_run(month: Month) -> None:
    """No start was made while a run lived, nor before a restart by Glue, although the lock of this Glue is loose."""
    assert [living for _, living in month.glue.started if living] == []
    assert month.account.most_living == 1


def test_starts_are_bounded(month: Month) -> None:
    """In no hour are there more starts than failures open the breaker, and one; a month has few in all."""
    starts = [at for at, _ in month.glue.started]
    policy = month.scene.policy
    assert max(in_an_hour(starts)) <= policy.breaker_failures + 1
    for start, end in (month.loop, month.bad):
        trials = (end - start).total_seconds() / policy.breaker_cooldown_seconds
        assert sum(start <= at < end for at in starts) <= policy.breaker_failures + trials + 1
    assert len(starts) <= month.most_starts()
    first, *others = [at for at in starts if month.bad[0] <= at < month.bad[1]]
    for failures, (before, at) in enumerate(pairwise([first, *others][: policy.breaker_failures])):
        assert (at - before).total_seconds() >= policy.backoff_first_seconds * 2**failures
    refused = max(in_an_hour(month.glue.refusals), default=0)
    assert refused <= (month.held[1] - month.held[0]) / timedelta(minutes=1)


def test_people_hear_of_what_lasts(month: Month) -> None:
    """Crash loops, refused starts and a job that is gone are alarms in time, each told once and not every minute."""
    told = month.account.told
    for start, end in (month.loop, month.bad):
        assert any(start <= at < end for at in told["crash_loop"])
    if max(in_an_hour(month.glue.refusals), default=0) > MANY_REFUSALS:
        [at] = told["starts_refused"]
        assert at <= month.glue.refusals[MANY_REFUSALS] + timedelta(minutes=2)
    assert any(month.gone[0] <= at < month.gone[1] for at in told["unknown_runs"])
    assert month.account.raised == set()
    assert len(month.scene.notifier.messages) <= 2 * len(month.glue.started) + len(month.events)


def test_no_run_ends_at_its_timeout(month: Month) -> None:
    """A run is asked to stop before Glue would kill it, unless Glue was not to be reached then."""
    ended = [run.ended_at for run in month.glue.runs.values() if run.state == "TIMEOUT"]
    spans = (month.away, month.busy)
    assert [at for at in ended if at and not any(start <= at < end + HOUR for start, end in spans)] == []


def test_manifests_wait_no_longer_than_the_longest_outage(month: Month) -> None:
    """The age of the oldest manifest is bounded by what keeps the job down, and by nothing else."""
    spans = (month.loop, month.away, month.bad, month.held, month.gone, month.busy)
    longest = max((end - start).total_seconds() for start, end in spans)
    assert month.account.oldest_seconds <= longest + max(bounds(month).values())


def test_a_seed_is_replayed() -> None:
    """The same seed is the same month, so that a failure can be looked at again."""
    one, other = Month(3, "timeout"), Month(3, "timeout")
    assert one.events == other.events
    one.live(days=3)
    other.live(days=3)
    assert one.account == other.account
    assert one.glue.started == other.glue.started


def in_an_hour(moments: list[datetime]) -> Iterator[int]:
    return (sum(at <= other < at + HOUR for other in moments) for at in moments)
