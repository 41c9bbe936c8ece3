"""What a call of `compact` shows while it works, and what may stop it: the ports of terminal and callback."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from compactor.adapters.stores import StoreSpec
from compactor.core.ports import ObjectStore
from compactor.core.text.formatting import count
from compactor.job.steps.results import CompactionResult

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

    def on_result(self, result: CompactionResult) -> None:
        """Count a manifest that has ended."""


class StopRequests(Protocol):
    """What may ask the work to stop."""

    requested: bool  # whether it was asked to stop

    def attach(self, stop: Callable[[], None]) -> None:
        """Set the function that stops the work. It is called at once if it was asked to stop before."""


def counter(show: Callable[[str], None]) -> Callable[[], None]:
    """Shows how many manifests were verified, after each of them."""
    checked = itertools.count(1)
    return lambda: show(f"verified {count(next(checked), 'manifest')}")
