"""The function that looks at the job once a minute, and whenever Glue says that a run changed its state."""

import os
from typing import Any

from compactor.control.wiring import ControlParts
from compactor.logs import configure_logs, log_event
from compactor.remote_settings import settings_at

_FLUSH_SECONDS = 10.0


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Look at the job and do what has to be done.

    Args:
        event: From the schedule, or Glue's `Glue Job State Change`; both lead to the same.
        context: Lambda's own.

    Returns:
        What was decided, done and not done, for the function's log.
    """
    configure_logs(as_json=True)
    settings = settings_at(os.environ["COMPACTOR_CONFIG"], os.environ)
    job_name = event.get("detail", {}).get("jobName", settings.control.job_name)
    if job_name != settings.control.job_name:
        log_event("control.other_job", job=job_name)
        return {"ignored": f"an event of job {job_name}"}
    parts = ControlParts(settings)
    step = parts.plane.step()
    parts.metrics.flush(_FLUSH_SECONDS)
    return {
        "decided": [f"{action.kind}: {action.reason}" for action in step.actions],
        "done": list(step.done),
        "failed": list(step.failed),
    }
