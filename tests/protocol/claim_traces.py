"""Records what happens to one file as its builders and planners die, or are held up, at each crash point."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from compactor.core.crash_points import OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.ports import Claim
from compactor.wiring import finding, planning
from compactor.wiring.app import App
from tests.protocol.configurations import claims
from tests.protocol.traces import Claimed, Trace
from tests.support.building import MIB, new_harness
from tests.support.harness import DiedError, Harness
from tests.support.memory_store import MemoryClaims
from tests.support.rebuilding import WatchedStore
from tests.support.s3_messages import notification

KEY = "raw/2026-01-02-0.ndjson"
LEASE_SECONDS = 301
MAX_IDS = 2
STEPS = (PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED, PlanCrashPoint.BOUND)
MODEL = claims("as recorded", Files='{"f1"}', Builders="{b1, b2}", Planners="{p1}", MaxIds=MAX_IDS)
FATES = {"manifest": "bound", "revoked": "revoked"}


@dataclass(frozen=True, slots=True)
class WatchedClaims(MemoryClaims):
    """Tells of each call that may have changed a claim."""

    on_change: list[Callable[[], None]] = field(default_factory=list)

    def claim(self, keys: Sequence[str], holder: str, *, now: datetime, lease_seconds: float) -> dict[str, Claim]:
        found = MemoryClaims.claim(self, keys, holder, now=now, lease_seconds=lease_seconds)
        self.on_change[0]()
        return found

    def take_over(
        self, keys: Sequence[str], *, from_holder: str, to_holder: str, now: datetime, lease_seconds: float
    ) -> set[str]:
        taken = MemoryClaims.take_over(
            self, keys, from_holder=from_holder, to_holder=to_holder, now=now, lease_seconds=lease_seconds
        )
        self.on_change[0]()
        return taken


class Scene:
    """One file, its message, and who claims it.

    Args:
        name: Of the trace.
    """

    def __init__(self, name: str) -> None:
        self.trace = Trace(name)
        self._ids: list[str] = []
        self._is_pending = True
        self._harness: Harness = new_harness()
        self._harness.store.put(f"s3://lake/{KEY}", b"x" * MIB * 12)
        self._etag = next(iter(self._harness.store.list("s3://lake/raw/"))).etag
        self._harness.claims = WatchedClaims(on_change=[self._note])
        self._store = WatchedStore(self._harness.store, on_change=self._note)
        self._note()

    def build(self, on_crash_point: OnCrashPoint = ignore_crash_point) -> None:
        """One builder gets the message, and acknowledges it if it may."""
        builder = planning.builder(self._components(on_crash_point), groups_at_once=1)
        report = builder.build({"message": notification("lake", KEY, 12 * MIB, self._etag)})
        self._is_pending = self._is_pending and bool(report.failed)
        self._note()

    def plan(self) -> None:
        """A planner lists the file."""
        finding.plan(self._harness.app(store=self._store), "s3://lake/raw")
        self._note()

    def let_lease_end(self) -> None:
        self._harness.clock.advance(LEASE_SECONDS)

    def _components(self, on_crash_point: OnCrashPoint) -> App:
        harness = self._harness
        return App(
            harness.settings,
            on_crash_point=on_crash_point,
            clock=harness.clock,
            store=self._store,
            claims=harness.claims,
        )

    def _note(self) -> None:
        store, layout = self._harness.store, self._harness.layout
        holders = [claim.holder for claim in self._harness.claims._claims.values()]
        written = [info.uri for info in store.list(layout.manifests_folder)]
        names = [uri.rpartition("/")[2].removesuffix(".json") for uri in written if uri.endswith(".json")]
        self._ids += [each for each in dict.fromkeys([*holders, *names]) if each not in self._ids]
        records = [self._harness.ledger.accepted(each) for each in self._ids]
        fates = [FATES[record.kind] if record else "unbound" for record in records]
        self.trace.add(
            Claimed(
                claim=self._ids.index(holders[0]) + 1 if holders else 0,
                fates=(*fates, *["unbound"] * (MAX_IDS - len(fates))),
                written=frozenset(self._ids.index(name) + 1 for name in names),
                pending=self._is_pending,
            )
        )


def _dies(step: PlanCrashPoint, then: str) -> Trace:
    scene = Scene(f"a builder dies at {step}, {then} follows")

    def die(reached: PlanCrashPoint, _manifest_id: str) -> None:
        if reached is step:
            raise DiedError

    with suppress(DiedError):
        scene.build(die)
    return _follow(scene, then)


def _is_held_up(step: PlanCrashPoint, then: str) -> Trace:
    scene = Scene(f"a builder is held up at {step}, {then} goes on")

    def wait(reached: PlanCrashPoint, _manifest_id: str) -> None:
        if reached is step:
            _follow(scene, then)

    scene.build(wait)
    return scene.trace


def _follow(scene: Scene, then: str) -> Trace:
    scene.let_lease_end()
    (scene.build if then == "a builder" else scene.plan)()
    return scene.trace


def claim_traces() -> Iterator[Trace]:
    """Every step, with a death or a delay there, and each kind of claimant that comes after the lease."""
    for step in STEPS:
        for then in ("a builder", "a planner"):
            yield from (each(step, then) for each in (_dies, _is_held_up))
