"""Moves a run's stream to a new checkpoint from time to time, so that its log does not grow without limit."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from compactor.core.crash_points import OnCrashPoint, RotationCrashPoint, ignore_crash_point
from compactor.core.errors import CompactorError, TryAgainError
from compactor.core.layout import canonical, folder
from compactor.core.ports import MetricsSink
from compactor.job.service import ManifestSource
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event

SILENT_SECONDS = 600.0
"""How long a successor stream may take until it delivers something, or finds nothing."""


@dataclass(slots=True, eq=False)
class _Stream:
    """One stream with its checkpoint.

    Attributes:
        names: The canonical URIs of the manifests that it listed. Its log has an entry for each.
        entries: How many these are; a micro-batch whose manifests disappeared before it read them counts as one.
        silent_since: When it started, until its first sign of activity; None from then on, and for the first stream.
        is_delivering: Whether one of its micro-batches is being delivered, or could not be.
        is_leaving: Whether it delivers no further ones, because another stream will follow it.
    """

    source: ManifestSource
    checkpoint: str
    names: set[str] = field(default_factory=set)
    entries: int = 0
    silent_since: float | None = None
    is_delivering: bool = False
    is_leaving: bool = False


@dataclass(slots=True, kw_only=True)
class RotatingSource:
    """A `compactor.job.service.ManifestSource` of consecutive streams, each with its own checkpoint.

    Spark's file source keeps every delivered manifest in memory and in its log, and rewrites all of them every ten
    micro-batches. A new stream lists the prefix, and delivers what its predecessor has not.

    A run that is about to end does not rotate. Nothing here has to survive a crash: no checkpoint is used twice, nor by
    a later run.

    Attributes:
        new_source: Creates a checkpoint's stream.
        max_manifests: Start a new stream after this many manifests, once half of them have left the prefix.
    """

    state: State
    new_source: Callable[[str], ManifestSource]
    metrics: MetricsSink
    max_manifests: int
    on_crash_point: OnCrashPoint = ignore_crash_point
    monotonic: Callable[[], float] = time.monotonic
    _on_batch: Callable[[Sequence[str]], None] = lambda _: None
    _once: bool = False
    _stream: _Stream | None = None
    _earlier: set[str] = field(default_factory=set)
    _check_at: int = 0
    _number: int = 0
    _ended: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        self.stop()  # the remains of a failed start
        self._on_batch, self._once = on_batch, once
        self._begin(set())

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the stream to end, and rotate when it is time; raises the error that ended the stream."""
        stream = self._stream
        if stream is None:
            return True
        ended = stream.source.wait(timeout_seconds)
        if not ended:
            self._check_heard(stream)
            if not self._once:
                self._rotate(stream)
        return ended

    def _check_heard(self, stream: _Stream) -> None:
        """Give up a successor stream that stays silent, for instance if Spark hangs in its first listing.

        Raises:
            TryAgainError: It is silent.
        """
        if stream.silent_since is None:
            return
        if stream.is_delivering or stream.entries or stream.source.is_idle():
            stream.silent_since = None
        elif (silent_seconds := self.monotonic() - stream.silent_since) >= SILENT_SECONDS:
            raise TryAgainError(
                f"the stream of checkpoint {stream.checkpoint} has delivered nothing for {silent_seconds:.0f} s; "
                f"expected a manifest or an idle stream within {SILENT_SECONDS:.0f} s"
            )

    def is_idle(self) -> bool:
        return self._stream is not None and self._stream.source.is_idle()

    def stop(self) -> None:
        """End the stream, and delete its checkpoint; a later sweep deletes leftovers."""
        self._end()
        self._drop_ended()

    def _end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._ended.append(stream.checkpoint)
            stream.source.stop()

    def _rotate(self, old: _Stream) -> None:
        """Start a successor once the log is long. The old stream is stopped between two micro-batches."""
        if not old.is_leaving and old.entries >= self._check_at and self._may_rotate(old):
            with self._lock:
                old.is_leaving = True
        # guard: a failed batch ends the stream, so that its manifests are redelivered
        if not old.is_leaving or old.is_delivering:
            return
        self._end()
        self.on_crash_point(RotationCrashPoint.STOPPED, self.state.ledger.run_id)
        self._drop_ended()
        self.on_crash_point(RotationCrashPoint.DROPPED, self.state.ledger.run_id)
        self._begin(old.names)
        self.on_crash_point(RotationCrashPoint.STARTED, self.state.ledger.run_id)
        log_event("checkpoint.rotated", delivered=old.entries)
        self.metrics.emit({"CheckpointRotations": 1})

    def _may_rotate(self, stream: _Stream) -> bool:
        """Whether a new stream's log will be at most half as long, and no other checkpoint remains."""
        self._check_at = stream.entries + self.max_manifests
        if not self._drop_ended():
            return False
        try:
            listed = self.state.store.list(self.state.layout.manifests_folder)
            left = sum(canonical(info.uri) in stream.names for info in listed)
        except CompactorError as exc:  # the stream continues
            log_event("checkpoint.not_rotated", error=exc)
            return False
        self._check_at = max(self._check_at, 2 * left)
        return 2 * left <= stream.entries

    def _begin(self, earlier: set[str]) -> None:
        self._number += 1
        checkpoint = self.state.layout.checkpoint(f"{self.state.ledger.run_id}-{self._number}")
        silent_since = self.monotonic() if earlier else None
        stream = _Stream(self.new_source(checkpoint), checkpoint, silent_since=silent_since)
        self._stream, self._earlier, self._check_at = stream, earlier, self.max_manifests
        stream.source.start(partial(self._deliver, stream), once=self._once)

    def _drop_ended(self) -> bool:
        """Delete the checkpoints of ended streams; return whether none remains."""
        try:
            while self._ended:
                listed = self.state.store.list(folder(self._ended[0]))
                self.state.store.delete([info.uri for info in listed])
                self._ended.pop(0)
        except CompactorError as exc:
            log_event("checkpoints.kept", error=exc)
        return not self._ended

    def _deliver(self, stream: _Stream, uris: Sequence[str]) -> None:
        with self._lock:
            if stream.is_leaving:  # its successor lists and delivers this
                return
            stream.is_delivering = True
        fresh = [uri for uri in uris if canonical(uri) not in self._earlier]
        stream.names.update(map(canonical, uris))
        stream.entries += max(1, len(uris))
        if fresh:
            self._on_batch(fresh)
        stream.is_delivering = False
