"""Runs one check of the control plane, every minute and at each state change of a Glue run."""

from collections.abc import Mapping
from typing import Any

from compactor.core.ports import FLUSH_SECONDS
from compactor.telemetry.logs import log_event
from compactor.wiring.control import ControlComponents
from compactor.wiring.functions import lasting_components


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Check the job once.

    Args:
        event: From the schedule, or Glue's `Glue Job State Change`; both lead to the same.

    Returns:
        What was decided, done and not done, for Lambda's log.
    """
    parts = lasting_components(ControlComponents)
    job_name = parts.settings.control.job_name
    changed = event.get("detail", {}).get("jobName", job_name)
    if changed != job_name:
        log_event("control.other_job", job=changed)
        return {"ignored": f"an event of job {changed}"}
    checked = parts.plane.check()
    parts.metrics.flush(FLUSH_SECONDS)
    return {
        "decided": [f"{action.kind}: {action.reason}" for action in checked.actions],
        "done": list(checked.done),
        "failed": list(checked.failed),
    }
