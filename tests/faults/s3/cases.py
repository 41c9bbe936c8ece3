"""Which cases are run when, and what is put on record of each."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from compactor.core.errors import AccessError, StuckError
from tests.faults.fault_rules import FaultKind, Operation
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import S3Lake

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
