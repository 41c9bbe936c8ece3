"""What a call of `compact` shows while it works, and what may stop it: the ports of terminal and callback."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.core.text.formatting import count, rate, shown_seconds, size
from compactor.job.results import Result

LEAST_SECONDS = 0.1
"""The least time between two calls for bytes that were read."""

Step = Literal["waiting", "reading", "compacting", "rebuilding", "verifying"]
"""A step of a call, by its name."""

StepDisplay = Callable[[Step], AbstractContextManager[Callable[[str], None]]]
"""Shows a step while its context is open; the value shows another text."""


class Display(Protocol):
    """Shows a call. `on_result` is called from many threads, all else from that of the call."""

    def say(self, message: str) -> None:
        """Show what the call waits for, or begins."""

    def step(self, name: Step) -> AbstractContextManager[Callable[[str], None]]:
        """Show a step without figures while the context is open; the value shows another text."""

    def store(self, spec: StoreSpec, prefixes: Sequence[str]) -> ObjectStore:
        """Open the store, which may tell how much is read below the prefixes."""

    def shown(self, total_bytes: int) -> AbstractContextManager[object]:
        """Show the work on this much input while the context is open."""

    def on_result(self, result: Result) -> None:
        """Count a manifest that has ended."""


class StopRequests(Protocol):
    """What may ask the work to stop."""

    requested: bool  # whether it was asked to stop

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work. It is called at once if it was asked to stop before."""


class VerifyProgress:
    """Shows how many manifests were verified, and how much of the inputs was compared.

    Args:
        show: Shows a text.
        clock: The time in seconds, for the rate.
    """

    def __init__(self, show: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._show = show
        self._clock = clock
        self._manifests = 0
        self._read_bytes = self._total_bytes = 0
        self._began = self._shown_at = 0.0

    def on_manifest(self) -> None:
        """Count a manifest."""
        self._manifests += 1
        self._show(self._text())

    def expect(self, total_bytes: int) -> None:
        """Begin to compare so many stored bytes of inputs."""
        self._total_bytes, self._began = total_bytes, self._clock()

    def read(self, stored_bytes: int) -> None:
        """Count bytes that were compared."""
        self._read_bytes += stored_bytes
        if self._clock() - self._shown_at >= LEAST_SECONDS:
            self._show(self._text())

    def _text(self) -> str:
        self._shown_at = self._clock()
        verified = f"verified {count(self._manifests, 'manifest')}"
        if not self._read_bytes:
            return verified
        seconds, left_bytes = self._shown_at - self._began, max(0, self._total_bytes - self._read_bytes)
        left = shown_seconds(left_bytes * seconds / self._read_bytes)
        compared = f"compared {size(self._read_bytes)} of {size(self._total_bytes)}"
        compared += f" at {rate(self._read_bytes, seconds)}, {left} left"
        return f"{verified}, {compared}" if self._manifests else compared
