"""The job without Spark, with faults at any of its calls: exact, or stopped with a clear line."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import AccessError, CompactorError
from tests.faults.fault_rules import PASSING, FaultKind, Operation, Rule, applies
from tests.faults.proxy import FaultProxy
from tests.faults.s3.cases import (
    FEWEST_CALLS,
    OF_THE_JOB,
    SEED,
    TIMEOUT_SECONDS,
    Seen,
    kind_at,
    kinds_seen_as,
    record_and_judge,
    sample,
    shortened,
    what_stopped,
)
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import BUCKET, S3Lake
from tests.faults.s3_server import S3Server
from tests.support.engines import WITHOUT_SPARK

pytestmark = pytest.mark.timeout(1800)  # dozens of runs of the job in a case

SEEN_ON = [(seen, operation) for seen in Seen for operation in OF_THE_JOB if kinds_seen_as(seen, operation)]


def job_cases(numbers: Sequence[int]) -> list[tuple[Any, ...]]:
    """All that a job can see of a fault on every kind of call; one slow answer is as good as many."""
    return [(*case, [1] if case[0] is Seen.SLOW else numbers) for case in SEEN_ON]


@pytest.mark.parametrize(
    ("seen", "operation", "numbers"),
    shortened(job_cases(range(1, 100)), sample(job_cases([2]), 3)),
)
def test_a_job_gets_over_a_fault_at_any_call(
    seen: Seen,
    operation: Operation,
    numbers: Sequence[int],
    lakes: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """One fault at the first, the second, ... call of its kind: nothing is lost, doubled or given up for it."""
    for number in numbers:
        lake = lakes()
        lake.fill()
        kind = kind_at(seen, operation, number, lake.engine)
        proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
        proxy.restart_count()
        restarts = lake.run_job(proxy.url, attempts=seen.attempts, timeout_seconds=TIMEOUT_SECONDS)
        traffic = proxy.restart_count()
        record_and_judge(lake, findings, "job", traffic.injected, [kind], restarts)
        if traffic.calls[operation] < number:
            assert number > FEWEST_CALLS[operation]
            break


def test_the_engines_meet_each_kind_of_fault_on_each_kind_of_call() -> None:
    """Although kinds of which a job sees the same take turns from call to call."""
    met = {
        (kind_at(seen, operation, number, engine), operation)
        for seen, operation in SEEN_ON
        for number in range(1, FEWEST_CALLS[operation] + 1)
        for engine in WITHOUT_SPARK
    }
    assert met == {(kind, operation) for kind in PASSING for operation in OF_THE_JOB if applies(kind, operation)}


@pytest.mark.parametrize("seed", [*(pytest.param(seed, marks=pytest.mark.faults) for seed in range(20)), SEED])
def test_a_job_gets_through_a_storm(
    seed: int, lakes: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings
) -> None:
    """All kinds of faults at random on a third of all calls, restart after restart, then calm: exact."""
    lake = lakes()
    lake.fill()
    proxy.use([Rule(kind, probability=0.04) for kind in PASSING], seed=seed)
    proxy.restart_count()
    restarts = 0
    for _ in range(3):
        with suppress(CompactorError):
            # Silence is waited for, and a call that is given up too soon is one more fault.
            restarts += lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS / 4)
            break
    proxy.use()
    lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
    record_and_judge(lake, findings, "storm", proxy.restart_count().injected, PASSING, restarts)


def test_staging_that_a_stale_listing_left_is_swept(
    lakes: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings
) -> None:
    """A job that is shown its staging as it was before does not delete it; a later one does."""
    lake = lakes()
    lake.fill()
    proxy.use([Rule(FaultKind.STALE_LISTING, pattern="staging", probability=1.0)])
    proxy.restart_count()
    client = lake.server.client(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
    assert not list(S3Store(client).list(f"{lake.root}/state/staging/good/"))
    lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
    injected = proxy.restart_count().injected
    proxy.use()
    assert lake.left_over()
    record_and_judge(lake, findings, "job", injected, [FaultKind.STALE_LISTING])


# A bucket is gone for all calls or for none: if only HEAD said so, it would say that objects are.
REFUSED = [
    *((FaultKind.ACCESS_DENIED, frozenset({operation, Operation.BUCKET})) for operation in OF_THE_JOB),
    (FaultKind.NO_SUCH_BUCKET, frozenset(Operation)),
]


def taken_in_turns(numbers: Sequence[int], engine: str) -> Sequence[int]:
    """The share of an engine, which has the next one where the other one has one; a single number is for both."""
    return numbers[WITHOUT_SPARK.index(engine) :: len(WITHOUT_SPARK)] if len(numbers) > 1 else numbers


@pytest.mark.parametrize(
    ("kind", "operations", "numbers"),
    shortened([(*case, range(1, 100)) for case in REFUSED], [(*REFUSED[-2], [1]), (*REFUSED[-1], [20])]),
)
def test_a_job_stops_where_an_operator_must_act(
    kind: FaultKind,
    operations: frozenset[Operation],
    numbers: Sequence[int],
    engine: str,
    lakes: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """Refused from some call on, it stops with a clear line and gives nothing up; once fixed, it is exact.

    Of a bucket that is gone, only the first of all calls matters, so the engines take these calls in turns.
    """
    for number in taken_in_turns(numbers, engine) if kind is FaultKind.NO_SUCH_BUCKET else numbers:
        lake = lakes()
        lake.fill()
        proxy.use([Rule(kind, operations, calls=frozenset({number}), burst=10_000)])
        proxy.restart_count()
        said = what_stopped(lambda lake=lake: lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS))
        assert said is None or re.fullmatch(rf".*s3://{BUCKET}/.*", said), "one line that names the place"
        assert lake.dead_letters() in ([], ["broken"])
        traffic = proxy.restart_count()
        proxy.use()
        lake.run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
        record_and_judge(lake, findings, "job", traffic.injected, [kind])
        if not traffic.injected:
            break


def test_a_bucket_that_is_not_there_stops_a_job(server: S3Server, proxy: FaultProxy) -> None:
    """A job whose bucket does not exist says so, and does not try again."""
    with pytest.raises(AccessError, match="s3://no-such-lake/"):
        S3Lake(server, "s3://no-such-lake/x").run_job(proxy.url, attempts=3, timeout_seconds=TIMEOUT_SECONDS)
