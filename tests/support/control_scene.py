"""What the tests of the control plane share: one over everything in memory."""

from typing import Any

from compactor.control.decisions import ActionKind
from compactor.control.gathering import Sources
from compactor.control.notices import Notices
from compactor.control.plane import Check, ControlPlane
from compactor.control.snapshot import QueueDepth
from compactor.core.documents.records import RunHeartbeat
from compactor.core.errors import AccessError, StoreUnavailable
from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore, ProcessName
from compactor.ledger.heartbeat import Runs
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.settings.control_policy import Policy
from tests.support.memory_glue import MemoryGlue, MemoryNotifier, MemoryQueue
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore

LAYOUT = Layout(manifests="/w/manifests", output="/w/output", state="/w/state")


class Machines:
    """Processes of other machines, which are unknown here."""

    def this(self) -> ProcessName:
        return ProcessName("lambda", 1)

    def is_gone(self, process: ProcessName) -> bool:  # noqa: ARG002 - a port's method
        return False


class BrokenQueue:
    """A queue that cannot be reached."""

    def depth(self) -> QueueDepth:
        raise StoreUnavailable("queue: away")

    def oldest_seconds(self, now: object) -> float | None:  # noqa: ARG002 - a port's method
        raise AccessError("age: denied")


class Scene:
    """A control plane over everything in memory.

    Args:
        store: What the control plane sees in place of the store itself.
        policy: The policy's numbers.
    """

    def __init__(self, store: ObjectStore | None = None, **policy: Any) -> None:
        self.clock = ManualClock()
        self.memory = MemoryStore(self.clock)
        self.store = store or self.memory
        self.glue = MemoryGlue(self.clock)
        self.queue, self.dead_letters = MemoryQueue(), MemoryQueue()
        self.notifier, self.metrics = MemoryNotifier(), MemoryMetrics()
        self.policy = Policy(**policy)

    def sources(self, **changes: Any) -> Sources:
        parts: dict[str, Any] = {
            "job": self.glue,
            "runs": Runs(self.store, LAYOUT, self.clock, Machines()),
            "queue": self.queue,
            "dead_letter_queue": self.dead_letters,
            "state": State(
                store=self.store,
                layout=LAYOUT,
                ledger=Ledger(self.store, LAYOUT, self.clock, "control"),
                clock=self.clock,
            ),
        }
        return Sources(**{**parts, **changes})

    def plane(self, **changes: Any) -> ControlPlane:
        notices = Notices(notifier=self.notifier, store=self.store, uri=LAYOUT.notices, job_name="job")
        return ControlPlane(
            sources=self.sources(**changes),
            policy=self.policy,
            notices=notices,
            metrics=self.metrics,
            clock=self.clock,
        )

    def check(self, **changes: Any) -> Check:
        return self.plane(**changes).check()

    def minutes(self, number: int, *, alive: bool = True) -> list[Check]:
        """Check once a minute, with or without a heartbeat from the job."""
        checks = []
        for _ in range(number):
            self.clock.advance(60)
            if alive:
                self.beat()
            checks.append(self.check())
        return checks

    def beat(self, run_id: str = "a") -> None:
        """Write a run's heartbeat."""
        now = self.clock.now()
        beat = RunHeartbeat(run_id=run_id, host="glue", process_id=7, started_at=now, heartbeat_at=now)
        self.memory.put(LAYOUT.run(run_id), beat.model_dump_json().encode())

    def deliver(self, name: str = "m1.json") -> None:
        self.memory.put(LAYOUT.manifests_folder + name, b"{}")


def kinds(checked: Check) -> list[str]:
    return [action.kind for action in checked.actions if action.kind is not ActionKind.ALARM]
