"""The policy of the control plane: the section `control`, and fixed limits with their reasons. No I/O."""

from datetime import datetime
from typing import Literal

from compactor.settings.sections import Control
from compactor.settings.types import MaintenanceWindow

JobService = Literal["Glue", "EMR Serverless", "ECS"]

STALL_SECONDS = 3600.0
"""How long a run may commit nothing while work waits. A manifest of the usual size takes a minute or two."""


class Policy(Control):
    """The section `control`, and the control plane's own limits."""

    service: JobService = "Glue"  # what runs the job
    # Starting Spark on new workers takes minutes.
    start_grace_seconds: float = 600.0  # longest time from RUNNING to a run's first heartbeat
    hang_seconds: float = 300.0  # a run is stopped if its heartbeat is older while work waits
    stall_seconds: float = STALL_SECONDS  # a run is drained if it commits nothing for this long while work waits
    idle_stop_seconds: float = 1800.0  # with "on_work", a run is stopped after this long without work
    drain_seconds: float = 900.0  # time until a draining run is stopped
    expired_grace_seconds: float = 600.0  # time for Glue to restart an expired run by itself
    backoff_first_seconds: float = 60.0  # doubles with each failed run
    backoff_longest_seconds: float = 900.0
    # Each run costs money, even if it fails at once. So after five failed runs in an hour, one run per hour follows.
    breaker_failures: int = 5  # failed runs within the window that open the breaker
    breaker_window_seconds: float = 3600.0
    breaker_cooldown_seconds: float = 3600.0  # time from the last failure to the next trial run

    @property
    def proven_seconds(self) -> float:
        """A run this old counts as working: a run that hangs from its start is stopped earlier."""
        return self.start_grace_seconds + self.hang_seconds + self.drain_seconds

    def is_short(self, lived_seconds: float, *, ended_by_itself: bool) -> bool:
        """Whether a run ended too early to count as working. With `on_work`, an idle run may end by itself."""
        may_idle = ended_by_itself and self.mode == "on_work"
        return lived_seconds < (min(self.proven_seconds, self.idle_stop_seconds) if may_idle else self.proven_seconds)

    def is_maintenance(self, moment: datetime) -> bool:
        """Whether Glue may be restarting the job at this moment."""
        return bool(self.maintenance_window) and MaintenanceWindow.parse(self.maintenance_window).covers(moment)
