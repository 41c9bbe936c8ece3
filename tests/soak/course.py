"""Takes a job through the phases of a soak, then lets it finish."""

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from compactor.core.layout import Layout
from compactor.core.ports import ObjectStore
from tests.soak.feeder import Feeder
from tests.soak.job import LEASE_SECONDS, Job
from tests.soak.phases import AFTERMATH, Phase, Weather
from tests.soak.place import Place
from tests.soak.supervisor import Life, Supervisor, lives
from tests.soak.throughput import Span

FINISHING_SECONDS = 1800.0
"""After a brown-out, the next attempt at a manifest may be due only in 10 minutes."""

PATIENCE_SECONDS = 1800.0
"""For the next attempt at any troubled manifest: on a busy machine one may wait 20 minutes for a slow lane."""

_PAUSE_SECONDS = 2.0
_YOUNG_SECONDS = {"spark": (1.0, 12.0), "native": (1.0, 12.0), "plain": (0.3, 2.0)}


class Runs:
    """Tells from the heartbeats of runs whether another one is at work.

    Args:
        store: Where the signs are.
        layout: Their place.
    """

    def __init__(self, store: ObjectStore, layout: Layout) -> None:
        self._store = store
        self._folder = layout.runs_folder
        self._known: set[str] = set()

    def look(self) -> None:
        """From now on, only others count."""
        self._known = self._signs()

    def is_there_another(self) -> bool:
        return bool(self._signs() - self._known)

    def _signs(self) -> set[str]:
        return {info.uri for info in self._store.list(self._folder)}


@dataclass
class Course:
    """One soak.

    Attributes:
        seed: What happens follows from it.
        feeder: Feeds the job.
        runs: Tell when the job is at work.
        spans: The phases that are measured, once they are over.
    """

    seed: int
    job: Job
    where: Place
    feeder: Feeder
    runs: Runs
    spans: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed}:weather")
        self._weather = Weather.CLEAR
        self.supervisor = Supervisor(
            self.job.command(once=False),
            self.job.environment,
            self.job.folder / "job.log",
            on_life=self._on_life,
            is_at_work=self.runs.is_there_another,
        )

    def run(self, phases: Sequence[Phase], minutes: float) -> None:
        """Go through phases, each for its share of the time, and on until all trouble is decided.

        Raises:
            BaseException: What ended the feeder.
        """
        self.feeder.turn(phases[0])
        self.feeder.start()
        try:
            with self.supervisor:
                for phase in phases:
                    self._run(phase, phase.share * minutes * 60)
                self._decide_trouble()
        finally:
            self.feeder.stop()
        if self.feeder.failure:
            raise self.feeder.failure

    def _run(self, phase: Phase, seconds: float) -> None:
        self._weather = phase.weather
        self.where.turn(self._weather, self._chance)
        self.feeder.turn(phase)
        began, until = datetime.now(UTC), time.monotonic() + seconds
        if phase.endings:
            self.supervisor.run(until, self._lives(phase), kills_per_minute=phase.kills_per_minute)
        else:
            self.supervisor.stay(until)
        if phase.is_measured:
            self.spans.append(Span(phase.name, began, datetime.now(UTC)))

    def _decide_trouble(self) -> None:
        """Wait until all trouble is decided. Only beside commits of others can it be told from trouble of the place."""
        self._run(AFTERMATH, 0.0)
        records, until = self.feeder.records_of_trouble(), time.monotonic() + PATIENCE_SECONDS
        while self.feeder.troubled() and time.monotonic() < until:
            self.supervisor.stay(time.monotonic() + _PAUSE_SECONDS)
            if (now := self.feeder.records_of_trouble()) != records:
                records, until = now, time.monotonic() + PATIENCE_SECONDS

    def _lives(self, phase: Phase) -> Iterator[Life]:
        return lives(f"{self.seed}:{phase.name}", phase.endings, _YOUNG_SECONDS[self.job.engine])

    def _on_life(self) -> None:
        self.where.turn(self._weather, self._chance)
        self.runs.look()

    def finish(self) -> int:
        """Plan and run without passing faults until nothing is left; how many runs it took.

        Raises:
            RuntimeError: It takes too long.
        """
        self.where.turn(Weather.CLEAR, self._chance)
        runs, until = 0, time.monotonic() + FINISHING_SECONDS
        while time.monotonic() < until:
            while not self.feeder.plan():
                time.sleep(LEASE_SECONDS / 3)
            self.supervisor.run_to_its_end(self.job.command(once=True), until - time.monotonic())
            runs += 1
            if not self.feeder.waiting():
                return runs
            time.sleep(_PAUSE_SECONDS)
        left = self.feeder.waiting()
        raise RuntimeError(f"{left} manifests are left after {runs} runs without faults: see {self.job.folder}")
