"""The process that builds manifests: takes announcements in batches, as Lambda passes them to functions.

python -m bench.sustained.building --config FILE --report FILE [--queue URL --end FILE --claims FILE]

Without a queue it takes them from stdin, until that ends.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench.sustained.messages import Inbox, Message, PipedInbox, QueueInbox, read_announcement
from compactor.adapters.local.sqlite.claims import SqliteClaims
from compactor.core.ports import ClaimTable
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


class Building:
    """Calls builder and sealer, each with new components, as in a function that starts cold.

    Args:
        settings: The settings of the job.
        inbox: The messages.
        claims: Who has announced which file; None for those in the settings.
        window_seconds: How long a message waits for others.
        seal_seconds: The time between two calls of the sealer.
    """

    def __init__(
        self,
        settings: Settings,
        inbox: Inbox,
        *,
        claims: ClaimTable | None = None,
        window_seconds: float = WINDOW_SECONDS,
        seal_seconds: float = SEAL_INTERVAL_SECONDS,
    ) -> None:
        self._settings = settings
        self._claims = claims
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

    def _build(self, messages: Sequence[Message]) -> None:
        began = time.monotonic()
        components = App(self._settings, claims=self._claims)
        report = _builder(components).build({str(number): message.body for number, message in enumerate(messages)})
        components.metrics.emit(report.figures[""])
        again = {int(number) for number in report.failed}
        self._inbox.settle(
            [message for number, message in enumerate(messages) if number not in again],
            [messages[number] for number in again],
        )
        self._built.messages += report.messages - len(report.failed)
        self._built.returned += len(report.failed)
        self._count(len(report.plans[""].manifests), began)

    def _seal(self) -> int:
        """Call the sealer; returns the number of pending parts that still wait."""
        began = time.monotonic()
        components = App(self._settings, claims=self._claims)
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
    """Build until no message is left and none will come, and write a report."""
    parser = ArgumentParser()
    for name in ("--config", "--report"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--end", type=Path)
    parser.add_argument("--queue", default="")
    parser.add_argument("--claims", type=Path)
    given = parser.parse_args()
    configure_logs(as_json=True)
    settings = load_settings(given.config, {})
    inbox = QueueInbox(given.queue, settings.aws.region, given.end) if given.queue else PipedInbox(sys.stdin)
    claims = SqliteClaims(str(given.claims)) if given.claims else None
    built = Building(settings, inbox, claims=claims).run()
    given.report.write_text(json.dumps(asdict(built)))


if __name__ == "__main__":
    main()
