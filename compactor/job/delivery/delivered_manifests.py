"""A source of the manifests of one micro-batch, which a stream outside the job has delivered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeliveredManifests:
    """A `compactor.job.service.ManifestSource` that ends after its only micro-batch.

    Attributes:
        uris: The manifests.
    """

    uris: Sequence[str]

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:  # noqa: ARG002 - of the port
        """Deliver them, in the thread of the caller."""
        on_batch(self.uris)

    def wait(self, timeout_seconds: float) -> bool:  # noqa: ARG002 - of the port
        """There is nothing to wait for."""
        return True

    def is_idle(self) -> bool:
        """Whether all was delivered."""
        return True

    def stop(self) -> None:
        """End."""
