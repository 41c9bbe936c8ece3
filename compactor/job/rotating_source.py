"""Moves the stream of a run to a new checkpoint now and then, so that its own log does not grow for ever."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from compactor.core.crash_points import OnRotationCrashPoint, RotationCrashPoint, ignore_rotation_crash_point
from compactor.core.errors import CompactorError, EngineLost
from compactor.core.layout import canonical, folder
from compactor.core.ports import MetricsSink
from compactor.core.rules.backoff import pause_seconds
from compactor.job.service import ManifestSource
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event


@dataclass(slots=True)
class RunCheckpoints:
    """Names checkpoints, and deletes those of streams that ended.

    No checkpoint is used twice, nor by a later run. So whatever of them is lost or stays matters to no stream.
    """

    state: State
    _number: int = 0
    _ended: list[str] = field(default_factory=list)

    def new(self) -> str:
        """The URI of a checkpoint that no stream has had."""
        self._number += 1
        return self.state.layout.checkpoint(f"{self.state.ledger.run_id}-{self._number}")

    def end(self, checkpoint: str) -> None:
        """Note that the stream of a checkpoint has ended."""
        self._ended.append(checkpoint)

    def drop_ended(self) -> None:
        """Delete the checkpoints of streams that ended. What cannot be deleted now is for the next call.

        Raises:
            CompactorError: The store failed.
        """
        while self._ended:
            listed = self.state.store.list(folder(self._ended[0]))
            self.state.store.delete([info.uri for info in listed])
            self._ended.pop(0)


SILENT_SECONDS = 600.0
"""A new stream that delivers nothing for so long, and is not idle either, is given up."""

FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 3600.0
"""Pauses after rotations that failed; they double."""

_AT_ONCE_SECONDS = 0.001  # Spark does not take 0


@dataclass(slots=True, eq=False)
class _Stream:
    """One stream with its checkpoint.

    Attributes:
        names: The canonical URIs of the manifests that it delivered. Its log has an entry for each.
        earlier: Those of the stream whose place it has, for it may have listed some before that one delivered them.
        entries: How many these are; a micro-batch whose manifests were gone before it read them counts as one.
        delivering: How many of its micro-batches are being delivered.
        has_news: Whether it delivered a manifest that no other stream had delivered before.
        is_leaving: Whether another one has its place.
        heard_at: When it delivered last, or began.
    """

    source: ManifestSource
    checkpoint: str
    heard_at: float
    names: set[str] = field(default_factory=set)
    earlier: set[str] = field(default_factory=set)
    entries: int = 0
    delivering: int = 0
    has_news: bool = False
    is_leaving: bool = False


@dataclass(slots=True, kw_only=True)
class RotatingSource:
    """A `compactor.job.service.ManifestSource` of streams that follow each other, each with a checkpoint of its own.

    Spark's file source keeps each manifest that it ever delivered in memory and in its log, and writes all of them
    again every ten micro-batches. A new stream knows only what is in the prefix: it begins beside the old one, which
    goes on until the new one has come as far. Between them they deliver each manifest once.

    A run that is to end does not rotate. Nothing here has to survive a crash: the next run begins a new checkpoint.

    Attributes:
        new_source: Makes the stream of a checkpoint.
        max_manifests: Begin a new stream after so many manifests, once half of them have left the prefix.
        monotonic: A clock that never jumps.
    """

    state: State
    new_source: Callable[[str], ManifestSource]
    checkpoints: RunCheckpoints
    metrics: MetricsSink
    max_manifests: int
    monotonic: Callable[[], float] = time.monotonic
    on_crash_point: OnRotationCrashPoint = ignore_rotation_crash_point
    _on_batch: Callable[[Sequence[str]], None] = lambda _: None
    _once: bool = False
    _current: _Stream | None = None
    _next: _Stream | None = None
    _leaving: _Stream | None = None
    _error: Exception | None = None
    _check_at: int = 0
    _resting_until: float = 0.0
    _failures: int = 0
    _lock: Lock = field(default_factory=Lock)

    def start(self, on_batch: Callable[[Sequence[str]], None], *, once: bool) -> None:
        """Start delivering micro-batches; see `compactor.job.service.ManifestSource`."""
        self.stop()  # what a start that failed has left
        self._on_batch, self._once, self._error = on_batch, once, None
        self._drop_ended()
        self._check_at, self._failures, self._resting_until = self.max_manifests, 0, 0.0
        self._current = self._new()
        self._begin(self._current)

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the stream to end, and rotate when it is time to; raises the error that ended the stream."""
        if self._current is None:
            return True
        ended = self._current.source.wait(timeout_seconds)
        # guard: an error of a batch ends the streams, so that its manifests come again
        if self._error is not None:  # of a stream that is not waited for
            raise self._error
        if not (ended or self._once):
            self._rotate()
        return ended

    def is_idle(self) -> bool:
        """Whether the last trigger found nothing new."""
        return self._current is not None and self._current.source.is_idle()

    def stop(self) -> None:
        """End all streams."""
        streams = [each for each in (self._current, self._next, self._leaving) if each is not None]
        self._current = self._next = self._leaving = None
        with ExitStack() as stack:  # all of them, also if one cannot be stopped
            for stream in streams:
                stack.callback(self._stop, stream)

    def _rotate(self) -> None:
        """Do the next step of a rotation, if there is one to do. A step that fails leaves the old stream as it is."""
        if self._leaving is not None:
            self._end(self._leaving)
        elif self._next is not None:
            self._try(partial(self._follow, self._next))
        elif self._current is not None and self._is_due(self._current):
            self._try(partial(self._begin_next, self._current))

    def _is_due(self, stream: _Stream) -> bool:
        return stream.entries >= self._check_at and self.monotonic() >= self._resting_until

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except EngineLost:  # the old stream is lost as well
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it is, the old stream goes on
            self._give_up(exc)

    def _begin_next(self, old: _Stream) -> None:
        """Start the new stream beside the old one, if its log will be half as long at most."""
        self.checkpoints.drop_ended()  # a rotation leaves no more than one checkpoint behind
        listed = self.state.store.list(self.state.layout.manifests_folder)
        left = sum(canonical(info.uri) in old.names for info in listed)
        if 2 * left > old.entries:
            self._check_at = max(2 * left, old.entries + self.max_manifests)
            return
        self._next = self._new()
        self._begin(self._next)
        self.on_crash_point(RotationCrashPoint.STARTED)

    def _follow(self, new: _Stream) -> None:
        """Let the new stream take over once it has come as far as the old one."""
        if new.source.wait(_AT_ONCE_SECONDS):
            raise CompactorError(f"the stream of checkpoint {new.checkpoint} ended; expected it to go on")
        if not (new.has_news or new.source.is_idle()):
            silent_seconds = self.monotonic() - new.heard_at
            if silent_seconds >= SILENT_SECONDS and not new.delivering:
                raise CompactorError(
                    f"the stream of checkpoint {new.checkpoint} has delivered nothing for {silent_seconds:.0f} s; "
                    f"expected a manifest or an idle stream within {SILENT_SECONDS:.0f} s"
                )
            return
        with self._lock:
            self._leaving, self._current, self._next = self._current, new, None
            if self._leaving is not None:
                self._leaving.is_leaving, new.earlier = True, self._leaving.names
        self.on_crash_point(RotationCrashPoint.TAKEN_OVER)

    def _end(self, old: _Stream) -> None:
        """Stop the old stream between two micro-batches, and delete its checkpoint."""
        if old.delivering:  # until the next call; it delivers no further one
            return
        self._leaving = None
        self._stop(old)
        self.on_crash_point(RotationCrashPoint.STOPPED)
        self._drop_ended()
        self.on_crash_point(RotationCrashPoint.DROPPED)
        self._check_at, self._failures = self.max_manifests, 0
        kept = self._current.entries if self._current is not None else 0
        log_event("checkpoint.rotated", delivered=old.entries, kept=kept)
        self.metrics.emit({"CheckpointRotations": 1})

    def _give_up(self, error: Exception) -> None:
        """Stay with the old stream, and try again after a pause."""
        new, self._next = self._next, None
        if new is not None:
            with suppress(Exception):  # the error that is told is the first one
                self._stop(new)
        self._failures += 1
        pause = pause_seconds(
            self._failures, first_seconds=FIRST_PAUSE_SECONDS, longest_seconds=LONGEST_PAUSE_SECONDS, chance=1.0
        )
        self._resting_until = self.monotonic() + pause
        log_event("checkpoint.not_rotated", failures=self._failures, pause_seconds=pause, error=error)
        self.metrics.emit({"CheckpointRotationsFailed": 1})

    def _new(self) -> _Stream:
        checkpoint = self.checkpoints.new()
        return _Stream(self.new_source(checkpoint), checkpoint, self.monotonic())

    def _begin(self, stream: _Stream) -> None:
        stream.source.start(partial(self._deliver, stream), once=self._once)

    def _stop(self, stream: _Stream) -> None:
        self.checkpoints.end(stream.checkpoint)
        stream.source.stop()

    def _drop_ended(self) -> None:
        try:
            self.checkpoints.drop_ended()
        except CompactorError as exc:
            log_event("checkpoints.kept", error=exc)

    def _deliver(self, stream: _Stream, uris: Sequence[str]) -> None:
        """Hand over what no other stream has delivered."""
        with self._lock:
            stream.heard_at = self.monotonic()
            if stream.is_leaving:  # the one that has its place delivers this
                return
            streams = (self._current, self._next, self._leaving)
            others = [each.names for each in streams if each is not None and each is not stream]
            others += [each.earlier for each in streams if each is not None]
            fresh = [uri for uri in uris if not any(canonical(uri) in names for names in others)]
            stream.names.update(map(canonical, uris))
            stream.entries += max(1, len(uris))
            stream.has_news = stream.has_news or bool(fresh)
            stream.delivering += 1
        try:
            if fresh:
                self._on_batch(fresh)
        except Exception as exc:
            self._error = exc
            raise
        finally:
            with self._lock:
                stream.delivering -= 1
