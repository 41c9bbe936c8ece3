"""Starts one run at a time on services that have no limit of their own."""

from collections.abc import Callable
from datetime import timedelta
from hashlib import blake2b

from compactor.control.snapshot import JobRuns
from compactor.core.ports import Clock

_HISTORY = timedelta(days=15)
_TOKEN_SECONDS = 600
"""How long a failed start is repeated under one token. A token is valid only for the same arguments."""


def start_one(name: str, job: JobRuns, clock: Clock, submit: Callable[[str], str]) -> str | None:
    """Submit a run of the job with this name unless one lives; return its id, or None.

    Concurrent starts submit the same token, so that the service makes one run. Each job has tokens of its own.
    """
    now = clock.now()
    before = job.list(now - _HISTORY)
    if any(run.is_living for run in before):
        return None
    latest = before[0].run_id if before else "none"
    told = f"{name}-{len(before)}-{latest}-{int(now.timestamp() // _TOKEN_SECONDS)}"
    return submit(blake2b(told.encode(), digest_size=16).hexdigest())
