"""Looks at the job and does what has to be done; called once a minute, and whenever a run of Glue changes its state."""

import os
from collections.abc import Mapping
from typing import Any

from compactor.control.wiring import ControlParts
from compactor.functions import FLUSH_SECONDS, settings_place
from compactor.logs import configure_logs, log_event
from compactor.remote_settings import settings_at

_LASTING: list[ControlParts] = []


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Look at the job once.

    Args:
        event: From the schedule, or Glue's `Glue Job State Change`; both lead to the same.

    Returns:
        What was decided, done and not done, for the log of whoever called.
    """
    configure_logs(as_json=True)
    parts = _parts()
    job_name = parts.settings.control.job_name
    changed = event.get("detail", {}).get("jobName", job_name)
    if changed != job_name:
        log_event("control.other_job", job=changed)
        return {"ignored": f"an event of job {changed}"}
    step = parts.plane.step()
    parts.metrics.flush(FLUSH_SECONDS)
    return {
        "decided": [f"{action.kind}: {action.reason}" for action in step.actions],
        "done": list(step.done),
        "failed": list(step.failed),
    }


def _parts() -> ControlParts:
    """The parts of the call before, for the sake of their clients, unless the settings have changed since.

    They are read each time, so that a change of the policy takes effect within a minute.
    """
    settings = settings_at(settings_place(), os.environ)
    if not _LASTING or _LASTING[0].settings != settings:
        _LASTING[:] = [ControlParts(settings)]
    return _LASTING[0]
