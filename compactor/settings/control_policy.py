"""The control plane's policy: the `[control]` settings and what follows from them alone. No I/O."""

from datetime import datetime

from compactor.settings.sections import Control
from compactor.settings.types import MaintenanceWindow


class Policy(Control):
    """The section `control`, with the conclusions that need nothing else."""

    @property
    def service(self) -> str:
        """What runs the job, as people call it."""
        return "Glue" if self.target == "glue" else "EMR Serverless"

    @property
    def proven_seconds(self) -> float:
        """A run this old has worked: a run that hung from its start would have been stopped earlier."""
        return self.start_grace_seconds + self.hang_seconds + self.drain_seconds

    def is_short(self, lived_seconds: float, *, ended_by_itself: bool) -> bool:
        """Whether a run ended too early to count as working. With `on_work`, an idle run may end by itself."""
        may_idle = ended_by_itself and self.mode == "on_work"
        return lived_seconds < (min(self.proven_seconds, self.idle_stop_seconds) if may_idle else self.proven_seconds)

    def is_maintenance(self, moment: datetime) -> bool:
        """Whether Glue may be restarting the job at this moment."""
        return bool(self.maintenance_window) and MaintenanceWindow.parse(self.maintenance_window).covers(moment)
