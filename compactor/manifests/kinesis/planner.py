"""Plans streams: lands what their shards have and no object has, and writes manifests of the objects."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

from compactor.core.documents.chains.kinesis_records import ShardLink, ShardLoss
from compactor.core.errors import CompactorError, SettingsError, StuckError
from compactor.core.kinesis.places import KinesisStream
from compactor.core.kinesis.ports import KinesisLog
from compactor.core.layout import is_within
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import MetricsSink
from compactor.ledger.kinesis.shard_chains import ShardChains
from compactor.ledger.state import State
from compactor.manifests.kinesis.landing import Landing, Settled, link_of
from compactor.manifests.kinesis.lines import ShardLines, Strays
from compactor.manifests.kinesis.shard_reading import ShardReader
from compactor.manifests.kinesis.shards import Shards, with_manifest
from compactor.manifests.kinesis.stream_plan import StreamPlan, about_stream
from compactor.manifests.packing import new_manifest_id
from compactor.manifests.plan import PlannedManifest

OBJECT_BYTES = 16 * 1024 * 1024
"""About how many bytes of lines a landed object has. Each shard that is read holds a few times as many in memory."""

SHARDS_AT_ONCE = 8
"""How many shards are read at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisPlanner:
    """Plans streams. Safe beside other planners, and after any that died.

    Attributes:
        log: The streams.
        allowed_prefixes: Where input may be.
        target_bytes: Returns how many bytes a manifest should name.
        stray_rules: By source, what becomes of packed records that hash to another shard.
        metrics: Where the age of the iterators goes.
        object_bytes: About the length of a landed object.
    """

    state: State
    log: KinesisLog
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    metrics: MetricsSink
    stray_rules: Mapping[str, Strays] = field(default_factory=dict)
    object_bytes: int = OBJECT_BYTES

    def plan(
        self, stream: KinesisStream, *, max_manifests: int, dry_run: bool = False, until: datetime | None = None
    ) -> StreamPlan:
        """Land all records of a stream that are in no object, and write manifests of the objects.

        Args:
            stream: Within the allowed prefixes.
            max_manifests: The most manifests to write. What is left is for the next plan.
            dry_run: Write nothing. Records are read all the same.
            until: What arrived later may wait for the next plan; by default what arrives from now on.

        Returns:
            What was done. Of trouble that kept it from more, the plan tells; nothing is lost by it.

        Raises:
            SettingsError: The stream is not within the allowed prefixes, or there is none of its name.
            StoreUnavailable: The stream or the store fails before anything was done.
        """
        self._check(stream)
        live = self.log.stream(stream)
        chains = ShardChains(self.state)
        if live is None:
            if not dry_run:
                _settle_gone(chains, stream)
            raise SettingsError([f"plan: {stream} -> expected a stream that is there"])
        former_ids = [each for each in chains.stream_ids(stream) if each != live.stream_id]
        plan, landing = (
            StreamPlan(stream_id=live.stream_id, former_ids=former_ids),
            Landing(chains, stream, live.stream_id),
        )
        began_at = self.state.clock.now()
        shards = Shards(
            chains=chains,
            log=self.log,
            stream=stream,
            live=live,
            stray_rule=self.stray_rules.get(stream.source, "keep"),
            now=self.state.clock.now,
            began_at=began_at,
            until=until or began_at,
            writes=not dry_run,
        )
        try:
            if not dry_run:
                self._settle_left(plan, landing)
            with closing(shards):
                self._land_all(shards, landing, plan, max_manifests)
        except CompactorError as exc:  # what was done until then is done for good, and has to be told
            plan.troubles.append(exc)
        plan.troubles += shards.troubles
        plan.has_read = shards.are_read
        plan.waiting, plan.behind_seconds = shards.waiting, shards.age_seconds()
        if shards.writes and plan.behind_seconds is not None:
            self._emit(stream, plan.behind_seconds)
        return plan

    def _check(self, stream: KinesisStream) -> None:
        if not any(is_within(f"{stream}/", each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {stream} -> expected a stream within input.allowed_prefixes: {allowed}"])

    def _settle_left(self, plan: StreamPlan, landing: Landing) -> None:
        """Finish what planners began that died, of this stream and of former ones of its name."""
        former = [Landing(landing.chains, landing.stream, each) for each in plan.former_ids]
        for left in (*former, landing):
            drafts, unreadable = left.left()
            plan.troubles += unreadable
            for draft in drafts:  # guard: drafts that planners left are settled
                try:
                    settled = left.settle(draft)
                except StuckError as exc:
                    plan.troubles.append(exc)
                    continue
                if not settled.has_begun:
                    _add(plan, settled)
            try:
                plan.swept += left.sweep(is_gone=left is not landing)
            except CompactorError as exc:  # leftovers can wait for an operator; records of the stream cannot
                plan.troubles.append(exc)

    def _land_all(self, shards: Shards, landing: Landing, plan: StreamPlan, max_manifests: int) -> None:
        target_bytes = max(self.target_bytes(), 1.0)
        shards.refresh()
        while (shards.unread() or shards.gone) and len(plan.totals.manifests) < max_manifests:
            landed = self._landed(shards, landing, target_bytes)
            if landed.links:
                shards.settled(self._settled(shards, landing, plan, landed))
        plan.has_more = bool(shards.unread() or shards.gone or shards.are_overtaken)
        if shards.writes:
            shards.check()
        idle = _Landed(self._new_id())
        idle.losses = shards.losses(idle.manifest_id)
        if idle.losses:
            self._settled(shards, landing, plan, idle)
        if shards.writes:
            shards.note_idle()

    def _settled(self, shards: Shards, landing: Landing, plan: StreamPlan, landed: "_Landed") -> Settled:
        """Settle what was landed for a manifest."""
        draft = landing.drafted(landed.manifest_id, landed.links, landed.sizes, landed.losses)
        if shards.writes:
            shards.check()
            settled = landing.settle(draft, is_new=True)
        else:
            settled = Settled(draft.manifest if draft.manifest.files else None, draft.links, frozenset(), draft.losses)
        _add(plan, settled)
        return settled

    def _new_id(self) -> str:
        return new_manifest_id(f"{self.state.clock.now():%Y-%m-%d}")

    def _landed(self, shards: Shards, landing: Landing, target_bytes: float) -> "_Landed":
        """Land what fills a manifest, or all that there is up to the end of a shard, behind which others come."""
        landed = _Landed(self._new_id())
        landed.links = with_manifest(list(shards.gone.values()), landed.manifest_id)
        landed.sizes = [0] * len(landed.links)
        shards.gone.clear()

        def land(reader: ShardReader) -> tuple[ShardLink, ShardLines] | None:
            piece = shards.piece(reader, self.object_bytes)
            if piece is None:
                return None
            if not shards.writes:
                return ShardLink(shard_id=reader.shard.shard_id, link=link_of(piece, "")), piece.lines
            if not landed.is_marked:  # several threads may mark it, each before its own object
                landing.begin(landed.manifest_id)
                landed.is_marked = True
            link = landing.land(landed.manifest_id, reader.shard.shard_id, piece)
            return link, piece.lines

        while (room := target_bytes - landed.weight_bytes) > 0 and not landed.closes and (unread := shards.unread()):
            # Each call has to be waited for: its records are not read again in this plan.
            most = max(SHARDS_AT_ONCE, ceil(room / self.object_bytes))
            for found in map_ordered(land, unread[:most], threads=SHARDS_AT_ONCE):
                if found is not None:
                    landed.links.append(found[0])
                    landed.sizes.append(found[1].length_bytes)
                    landed.weight_bytes += found[1].weight_bytes
        return landed

    def _emit(self, stream: KinesisStream, age_seconds: float) -> None:
        values = {"IteratorAgeSeconds": age_seconds}
        self.metrics.emit(values)
        self.metrics.emit(values, about_stream(stream))


def _settle_gone(chains: ShardChains, stream: KinesisStream) -> None:
    """Write the manifests that planners left of a stream that is gone: its landed objects are there."""
    for stream_id in chains.stream_ids(stream):
        landing = Landing(chains, stream, stream_id)
        for draft in landing.left()[0]:
            with suppress(StuckError):  # `verify` tells
                landing.settle(draft)


def _add(plan: StreamPlan, settled: Settled) -> None:
    for each in settled.links:
        plan.add(each.link)
    plan.gaps += settled.gaps
    plan.totals.held += len(settled.lost)
    if settled.manifest is not None:
        manifest = settled.manifest
        plan.totals.manifests.append(PlannedManifest.of(manifest.date, manifest.files, manifest.manifest_id))


@dataclass(slots=True)
class _Landed:
    """What was landed for one manifest.

    Attributes:
        is_marked: Whether a mark says that objects are being landed for it.
    """

    manifest_id: str
    is_marked: bool = False
    links: list[ShardLink] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    weight_bytes: int = 0
    losses: list[ShardLoss] = field(default_factory=list)

    @property
    def closes(self) -> bool:
        """Whether a shard ended."""
        return any(each.link.closes for each in self.links)
