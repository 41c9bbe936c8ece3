"""Lands logs: writes what their partitions have and no object has, and manifests of the objects."""

from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

from compactor.core.documents.landing import PartitionLink, PartitionLoss
from compactor.core.errors import CompactorError, SettingsError, StuckError
from compactor.core.layout import is_within
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import Log
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import MetricsSink
from compactor.ledger.landing.chains import LogChains
from compactor.ledger.state import State
from compactor.sources.landing.landing import Landing, Settled, link_of
from compactor.sources.landing.lines import NewLines
from compactor.sources.landing.partition_reading import PartitionReader
from compactor.sources.landing.partitions import Partitions, with_manifest
from compactor.sources.landing.result import LandingResult, about_log
from compactor.sources.packing import new_manifest_id
from compactor.sources.plan import PlannedManifest

OBJECT_BYTES = 16 * 1024 * 1024
"""About how many bytes of lines a landed object has. Each partition that is read holds a few times as many."""

PARTITIONS_AT_ONCE = 8
"""How many partitions are read at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lander:
    """Lands logs. Safe beside others, and after any that died.

    Attributes:
        log: The logs.
        allowed_prefixes: Where input may be.
        target_bytes: Returns how many bytes a manifest should name.
        new_lines: Makes what gathers the lines of a partition.
        metrics: Where the age of what waits goes.
        object_bytes: About how many bytes of lines a landed object has.
    """

    state: State
    log: Log
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    new_lines: NewLines
    metrics: MetricsSink
    object_bytes: int = OBJECT_BYTES

    def land(
        self, log: LogName, *, max_manifests: int, dry_run: bool = False, until: datetime | None = None
    ) -> LandingResult:
        """Land all records of a log that are in no object, and write manifests of the objects.

        Args:
            log: Within the allowed prefixes.
            max_manifests: The most manifests to write. What is left is for the next time.
            dry_run: Write nothing. Records are read all the same.
            until: What arrived later may wait for the next time; by default what arrives from now on.

        Returns:
            What was done. Of trouble that kept it from more, the result tells; nothing is lost by it.

        Raises:
            SettingsError: The log is not within the allowed prefixes, or there is none of its name.
            StoreUnavailable: The log or the store fails before anything was done.
        """
        self._check(log)
        live, chains = self.log.describe(log), LogChains(self.state)
        if live is None:
            if not dry_run:
                _settle_gone(chains, log)
            raise SettingsError([f"plan: {log} -> expected a log that is there"])
        former_ids = [each for each in chains.log_ids(log) if each != live.log_id]
        plan, landing = LandingResult(log_id=live.log_id, former_ids=former_ids), Landing(chains, log, live.log_id)
        began_at = self.state.clock.now()
        partitions = Partitions(
            chains=chains,
            log=self.log,
            name=log,
            live=live,
            new_lines=self.new_lines,
            piece_bytes=self.object_bytes,
            now=self.state.clock.now,
            began_at=began_at,
            until=until or began_at,
            writes=not dry_run,
        )
        try:
            if not dry_run:
                self._settle_left(plan, landing)
            with closing(partitions):
                self._land_all(partitions, landing, plan, max_manifests)
        except CompactorError as exc:  # what was done until then is done for good, and has to be told
            plan.troubles.append(exc)
        plan.troubles += partitions.troubles
        plan.has_read = partitions.are_read
        plan.waiting, plan.behind_seconds = partitions.waiting, partitions.age_seconds()
        if partitions.writes and plan.behind_seconds is not None:
            self._emit(log, plan.behind_seconds)
        return plan

    def _check(self, log: LogName) -> None:
        if not any(is_within(f"{log}/", each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {log} -> expected it within input.allowed_prefixes: {allowed}"])

    def _settle_left(self, plan: LandingResult, landing: Landing) -> None:
        """Finish what was begun by some that died, of this log and of former ones of its name."""
        former = [Landing(landing.chains, landing.name, each) for each in plan.former_ids]
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
            except CompactorError as exc:  # leftovers can wait for an operator; records of the log cannot
                plan.troubles.append(exc)

    def _land_all(self, partitions: Partitions, landing: Landing, plan: LandingResult, max_manifests: int) -> None:
        target_bytes = max(self.target_bytes(), 1.0)
        partitions.refresh()
        while (partitions.unread() or partitions.gone) and len(plan.totals.manifests) < max_manifests:
            landed = self._landed(partitions, landing, target_bytes)
            if landed.links:
                partitions.settled(self._settled(partitions, landing, plan, landed))
        plan.has_more = bool(partitions.unread() or partitions.gone or partitions.are_overtaken)
        if partitions.writes:
            partitions.check()
        idle = _Landed(self._new_id())
        idle.losses = partitions.losses(idle.manifest_id)
        if idle.losses:
            self._settled(partitions, landing, plan, idle)
        if partitions.writes:
            partitions.note_idle()

    def _settled(self, partitions: Partitions, landing: Landing, plan: LandingResult, landed: "_Landed") -> Settled:
        """Settle what was landed for a manifest."""
        draft = landing.drafted(landed.manifest_id, landed.links, landed.sizes, landed.losses)
        if partitions.writes:
            partitions.check()
            settled = landing.settle(draft, is_new=True)
        else:
            named, gaps = draft.manifest if draft.manifest.files else None, landing.gaps(draft.links, draft.losses)
            settled = Settled(named, draft.links, frozenset(), draft.losses, gaps=gaps)
        _add(plan, settled)
        return settled

    def _new_id(self) -> str:
        return new_manifest_id(f"{self.state.clock.now():%Y-%m-%d}")

    def _landed(self, partitions: Partitions, landing: Landing, target_bytes: float) -> "_Landed":
        """Land what fills a manifest, or all that there is up to the end of a shard, behind which others come."""
        landed = _Landed(self._new_id())
        landed.links = with_manifest(list(partitions.gone.values()), landed.manifest_id)
        landed.sizes = [0] * len(landed.links)
        partitions.gone.clear()

        def land(reader: PartitionReader) -> tuple[PartitionLink, int, int] | None:
            piece = partitions.piece(reader)
            if piece is None:
                return None
            taken, partition_id = piece.lines.taken_bytes, reader.partition.partition_id
            if not partitions.writes:
                size = len(piece.lines.to_bytes()) if piece.lines.lines else 0
                return PartitionLink(partition_id=partition_id, link=link_of(piece, "")), size, size or taken
            if not landed.is_marked:  # several threads may mark it, each before its own object
                landing.begin(landed.manifest_id)
                landed.is_marked = True
            link, size = landing.land(landed.manifest_id, partition_id, piece)
            return link, size, size or taken

        while (
            (room := target_bytes - landed.weight_bytes) > 0 and not landed.closes and (unread := partitions.unread())
        ):
            # Each call has to be waited for: its records are not read again this time.
            most = max(PARTITIONS_AT_ONCE, ceil(room / self.object_bytes))
            for found in map_ordered(land, unread[:most], threads=PARTITIONS_AT_ONCE):
                if found is not None:
                    link, size, weight = found
                    landed.links.append(link)
                    landed.sizes.append(size)
                    landed.weight_bytes += weight
        return landed

    def _emit(self, log: LogName, age_seconds: float) -> None:
        values = {"LandingAgeSeconds": age_seconds}
        self.metrics.emit(values)
        self.metrics.emit(values, about_log(log))


def _settle_gone(chains: LogChains, log: LogName) -> None:
    """Write the manifests that were left of a log that is gone: its landed objects are there."""
    for log_id in chains.log_ids(log):
        landing = Landing(chains, log, log_id)
        for draft in landing.left()[0]:
            with suppress(StuckError):  # `verify` tells
                landing.settle(draft)


def _add(plan: LandingResult, settled: Settled) -> None:
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
    links: list[PartitionLink] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    weight_bytes: int = 0
    losses: list[PartitionLoss] = field(default_factory=list)

    @property
    def closes(self) -> bool:
        """Whether a shard ended."""
        return any(each.link.closes for each in self.links)
