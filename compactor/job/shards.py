"""Determines which manifests this run takes: all of them, or those of its shard and of shards whose runs ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from compactor.core.documents.records import LIFE_SECONDS
from compactor.core.errors import CompactorError
from compactor.core.layout import id_from_name
from compactor.core.rules.sharding import Shard, taker
from compactor.ledger.heartbeat import Runs, runs_of_shards, works_alone
from compactor.telemetry.logs import log_event

REFRESH_SECONDS = 5.0
"""Age at which heartbeats are reread before use."""

JOIN_SECONDS = 2 * REFRESH_SECONDS
"""How long a run waits after its first heartbeat, so that all others have seen it and leave it its share."""


class Share:
    """The manifests that this run takes: all of them, unless it is one of several shards.

    Attributes:
        is_whole: Whether it always takes all manifests.
    """

    is_whole: bool = True

    def is_mine(self, uri: str) -> bool:  # noqa: ARG002 - of the shards
        """Whether this run takes the manifest in an object of the watched prefix. Any thread may ask."""
        return True

    def has_joined(self) -> bool:
        """Whether other runs know this one, so that it may start."""
        return True

    def has_changed(self) -> bool:
        """Whether the share changed at any time since the last call. One thread asks."""
        return False

    def leads(self) -> bool:
        """Whether this run does what one run does for all shards."""
        return True

    def is_living(self, run_id: str) -> bool:  # noqa: ARG002 - of the shards
        """Whether another run is alive, by its last heartbeat."""
        return False


@dataclass(frozen=True, slots=True)
class _View:
    numbers: frozenset[int] = frozenset()
    is_taking: bool = False

    def takes(self, name: str, number: int) -> bool:
        return self.is_taking and taker(name, self.numbers) == number


@dataclass(kw_only=True)
class ShardShare(Share):
    """The manifests of one shard, and of shards whose runs ended.

    A shard counts as stopped once its run has ended or was asked to, or has had no heartbeat for `LIFE_SECONDS` by the
    store's clock. One that this run has not seen yet is awaited for as long. The runs need not agree: a manifest taken
    by two of them takes effect once. Each query raises `CompactorError` if the heartbeats were never read, and cannot
    be now.
    """

    shard: Shard
    run_id: str
    runs: Runs
    monotonic: Callable[[], float] = time.monotonic
    is_whole: bool = field(default=False, init=False)
    _view: _View = field(default_factory=_View, init=False)
    _has_changed: bool = field(default=False, init=False)
    _read_at: float | None = field(default=None, init=False)
    _began_at: float | None = field(default=None, init=False)
    _member_since: float | None = field(default=None, init=False)
    _seen: set[int] = field(default_factory=set, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def is_mine(self, uri: str) -> bool:
        return self._current().takes(id_from_name(uri), self.shard.number)

    def has_joined(self) -> bool:
        return self._current().is_taking

    def has_changed(self) -> bool:
        """Whether the share changed since the last call, even if it changed back."""
        self._current()
        with self._lock:
            has_changed, self._has_changed = self._has_changed, False
        return has_changed

    def leads(self) -> bool:
        """Whether no shard before this one takes manifests."""
        view = self._current()
        return view.is_taking and self.shard.number == min(view.numbers, default=0)

    def is_living(self, run_id: str) -> bool:
        return bool(self.runs.living_among([run_id]))

    def _current(self) -> _View:
        with self._lock:
            now = self.monotonic()
            if self._read_at is None or now - self._read_at >= REFRESH_SECONDS:
                self._read(now)
            return self._view

    def _read(self, now: float) -> None:
        """Read the heartbeats. If that fails, the last view stays: the store has the last word anyway."""
        try:
            living = self.runs.living()
        except CompactorError as exc:
            if self._read_at is None:
                raise
            self._read_at = now
            log_event("shards.unread", shard=self.shard.number, of=self.shard.of, error=exc)
            return
        self._read_at = now
        self._began_at = now if self._began_at is None else self._began_at
        members = runs_of_shards(living)
        self._seen.update(members)
        # guard: a job that was paused takes nothing before its heartbeat is seen again
        is_member = members.get(self.shard.number) == self.run_id
        self._member_since = (self._member_since or now) if is_member else None
        awaited = {*range(1, self.shard.of + 1)} - self._seen if now - self._began_at < LIFE_SECONDS else set()
        has_joined = self._member_since is not None and now - self._member_since >= JOIN_SECONDS
        view = _View(frozenset(members.keys() | awaited), has_joined and not works_alone(living))
        if view != self._view:
            number, of = self.shard.number, self.shard.of
            self._has_changed = True
            log_event("shards.changed", shard=number, of=of, shards=sorted(view.numbers), taking=view.is_taking)
        self._view = view
