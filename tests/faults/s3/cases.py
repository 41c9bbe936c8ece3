"""Which cases are run when, and what is put on record of each."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import pytest

from compactor.core.errors import AccessError, StuckError
from tests.faults.fault_rules import LOST_ANSWERS, FaultKind, Operation, applies
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import S3Lake
from tests.support.engines import WITHOUT_SPARK

SEED = 20251221
TIMEOUT_SECONDS = 2.0


def shortened(cases: Sequence[tuple[Any, ...]], few: Sequence[tuple[Any, ...]]) -> list[Any]:
    """All cases for `make test-faults`, and a few of them for `make test`."""
    return [*(pytest.param(*case, marks=pytest.mark.faults) for case in cases), *few]


def sample(cases: Sequence[tuple[Any, ...]], count: int) -> list[tuple[Any, ...]]:
    """Some of them, the same ones each time."""
    return random.Random(SEED).sample(cases, count)


OF_THE_JOB = [
    Operation.LIST_OBJECTS,
    Operation.HEAD_OBJECT,
    Operation.GET_OBJECT,
    Operation.CREATE_OBJECT,
    Operation.PUT_OBJECT,
    Operation.DELETE_OBJECTS,
    Operation.COPY_OBJECT,
]


READS = frozenset({Operation.LIST_OBJECTS, Operation.HEAD_OBJECT, Operation.GET_OBJECT})


class Seen(StrEnum):
    """What a job can see of a fault that passes: the store's error, or none, and what became of its object.

    Which kind of fault it was, only the store can see, and `test_store.py` tries each kind on each kind of call there.
    """

    FAILED = "failed"
    """Nothing was done, but the job does not know whether it was."""

    LOST = "lost"
    """A write was made, but the job does not know whether it was."""

    REPEATED = "repeated"
    """A write was made, and its repeat by the client meets what it wrote."""

    STALE = "stale"
    """A listing from before the last change."""

    SLOW = "slow"
    """All is well, later."""

    @property
    def attempts(self) -> int:
        """How often the client sends a request at most."""
        return 3 if self is Seen.REPEATED else 1


def kinds_seen_as(seen: Seen, operation: Operation) -> list[FaultKind]:
    """The kinds of faults on such a call of which a job sees the same."""
    told = [FaultKind.SLOW_DOWN, FaultKind.INTERNAL_ERROR, FaultKind.RESET, FaultKind.SILENCE, FaultKind.ERROR_IN_OK]
    lost = [*sorted(LOST_ANSWERS), FaultKind.TRUNCATED_BODY]
    kinds = {
        Seen.FAILED: [*told, *lost] if operation in READS else told,
        Seen.LOST: [] if operation in READS else lost,
        Seen.REPEATED: [] if operation in READS else lost,
        Seen.STALE: [FaultKind.STALE_LISTING],
        Seen.SLOW: [FaultKind.SLOW_BODY],
    }
    return [kind for kind in kinds[seen] if applies(kind, operation)]


def kind_at(seen: Seen, operation: Operation, number: int, engine: str) -> FaultKind:
    """The fault at a call of a job: its kinds take turns, and each engine begins with another one.

    Args:
        seen: What the job sees of it.
        operation: The kind of the call.
        number: Of the call among those of its kind, from 1.
        engine: Of the job.
    """
    kinds = kinds_seen_as(seen, operation)
    return kinds[(number - 1 + WITHOUT_SPARK.index(engine) * len(kinds) // 2) % len(kinds)]


FEWEST_CALLS = {
    Operation.LIST_OBJECTS: 12,
    Operation.HEAD_OBJECT: 12,
    Operation.GET_OBJECT: 10,
    Operation.CREATE_OBJECT: 10,
    Operation.PUT_OBJECT: 6,
    Operation.DELETE_OBJECTS: 4,
    Operation.COPY_OBJECT: 3,
}
"""A job makes at least so many calls of a kind; in so many, the two engines meet each kind of fault."""


def what_stopped(work: Callable[[], object]) -> str | None:
    """The message of the error that an operator gets to see; None if the fault came too late to matter."""
    try:
        work()
    except (AccessError, StuckError) as exc:
        return str(exc)
    return None


def record_and_judge(
    lake: S3Lake,
    findings: Findings,
    level: str,
    injected: Mapping[tuple[FaultKind, Operation], int],
    kinds: Iterable[FaultKind],
    restarts: int = 0,
) -> None:
    """Put on record what was lost and doubled, before anything is asserted."""
    lost, doubled = lake.lost_and_doubled()
    for kind in sorted(set(kinds)):
        of_kind = {operation: number for (found, operation), number in injected.items() if found is kind}
        counts = {"injected": sum(of_kind.values()), "restarts": restarts, "lost": lost, "doubled": doubled}
        findings.add(level, kind, of_kind, **counts)
    if any(kind is FaultKind.STALE_LISTING for kind, _ in injected):
        lake.sweep()  # what such a listing leaves out is not deleted by it
    lake.assert_exact()
