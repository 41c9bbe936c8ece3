"""The process that builds manifests: takes announcements from stdin in batches, as Lambda passes them to functions.

python -m bench.sustained.building --config FILE --report FILE
"""

import json
import sys
import threading
import time
from argparse import ArgumentParser
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.sustained.messages import read_announcement
from compactor.settings.settings import Settings, load_settings
from compactor.sources.events.builder import Builder
from compactor.sources.events.sealer import SEAL_INTERVAL_SECONDS
from compactor.telemetry.logs import configure_logs
from compactor.wiring import planning
from compactor.wiring.app import App

BATCH_MESSAGES = 2000
WINDOW_SECONDS = 15.0
"""Both are the defaults of the deployment."""


@dataclass(slots=True)
class Built:
    """What builder and sealer did.

    Attributes:
        messages: Announcements taken in.
        calls: Calls of builder and sealer.
        manifests: Manifests of builder and sealer.
        returned: Messages that were returned to the queue.
        longest_call_seconds: The longest call of builder or sealer.
    """

    messages: int = 0
    calls: int = 0
    manifests: int = 0
    returned: int = 0
    longest_call_seconds: float = 0.0


class Inbox:
    """A queue in memory, which takes messages however slow the builder is.

    Args:
        lines: The messages, as they arrive.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._fill, name="inbox", daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether no message waits, and none will arrive."""
        with self._changed:
            return self._ended and not self._waiting

    def take(self, most: int, window_seconds: float) -> list[str]:
        """Take the next batch: the most that a call may have, or what arrives within the window."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._waiting) >= most, window_seconds)
            return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def give_back(self, messages: Iterable[str]) -> None:
        """Return messages to the queue."""
        with self._changed:
            self._waiting.extend(messages)

    def _fill(self) -> None:
        for line in self._lines:
            with self._changed:
                self._waiting.append(line)
                self._changed.notify()
        with self._changed:
            self._ended = True
            self._changed.notify()


class Building:
    """Calls builder and sealer, each with new components, as in a function that starts cold.

    Args:
        settings: The settings of the job.
        inbox: The messages.
        window_seconds: How long a message waits for others.
        seal_seconds: The time between two calls of the sealer.
    """

    def __init__(
        self,
        settings: Settings,
        inbox: Inbox,
        *,
        window_seconds: float = WINDOW_SECONDS,
        seal_seconds: float = SEAL_INTERVAL_SECONDS,
    ) -> None:
        self._settings = settings
        self._inbox = inbox
        self._window_seconds = window_seconds
        self._seal_seconds = seal_seconds
        self._built = Built()

    def run(self) -> Built:
        """Work until no message and no pending part is left."""
        next_seal = time.monotonic() + self._seal_seconds
        while True:
            window = max(0.0, min(self._window_seconds, next_seal - time.monotonic()))
            messages = self._inbox.take(BATCH_MESSAGES, window)
            if messages:
                self._build(messages)
            elif self._inbox.is_over:
                time.sleep(max(0.0, next_seal - time.monotonic()))
            if time.monotonic() >= next_seal:
                waiting = self._seal()
                next_seal += self._seal_seconds
                if not waiting and self._inbox.is_over:
                    return self._built

    def _build(self, messages: list[str]) -> None:
        began = time.monotonic()
        components = App(self._settings)
        report = _builder(components).build({str(number): message for number, message in enumerate(messages)})
        components.metrics.emit(report.figures[""])
        self._inbox.give_back(messages[int(number)] for number in report.failed)
        self._built.messages += report.messages - len(report.failed)
        self._built.returned += len(report.failed)
        self._count(len(report.plans[""].manifests), began)

    def _seal(self) -> int:
        """Call the sealer; returns the number of pending parts that still wait."""
        began = time.monotonic()
        components = App(self._settings)
        report = planning.sealer(components).seal()
        components.metrics.emit(report.figures)
        self._count(len(report.manifests), began)
        return report.waiting_parts

    def _count(self, manifests: int, began: float) -> None:
        self._built.calls += 1
        self._built.manifests += manifests
        self._built.longest_call_seconds = max(self._built.longest_call_seconds, time.monotonic() - began)


def _builder(components: App) -> Builder:
    return replace(planning.builder(components), read_body=read_announcement)


def main() -> None:
    """Build from stdin until its end, and write a report."""
    parser = ArgumentParser()
    for name in ("--config", "--report"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args()
    configure_logs(as_json=True)
    built = Building(load_settings(given.config, {}), Inbox(sys.stdin)).run()
    given.report.write_text(json.dumps(asdict(built)))


if __name__ == "__main__":
    main()
