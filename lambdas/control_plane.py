"""Keeps the Glue job as configured; called once a minute, and when a Glue run changes its state."""

from collections.abc import Mapping
from typing import Any

from compactor.wiring.functions import check_job


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Run one control-plane check."""
    return check_job(event)
