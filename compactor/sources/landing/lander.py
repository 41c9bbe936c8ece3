"""Lands logs: writes new records to objects, and manifests for the objects."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

from compactor.core.documents.landing import LandedLink, LandingProgress
from compactor.core.errors import CompactorError, SettingsError, StuckError
from compactor.core.layout import is_within
from compactor.core.logs.names import LogGap, LogName
from compactor.core.logs.ports import Log
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import MetricsSink
from compactor.ledger.landing.chains import LogChains
from compactor.ledger.landing.progress import LandingNotes
from compactor.ledger.state import State
from compactor.sources.landing.drafts import Landing, Settled
from compactor.sources.landing.lines import NewLines
from compactor.sources.landing.partitions import KEPT, MARGIN, PartitionReader, Partitions, Reading
from compactor.sources.packing import new_manifest_id
from compactor.sources.plan import Plan, PlannedManifest
from compactor.telemetry.error_text import described
from compactor.telemetry.logs import log_event

OBJECT_BYTES = 16 * 1024 * 1024
"""About how many bytes of lines a landed object has. Each partition being read holds a few times as many."""

PARTITIONS_AT_ONCE = 8
"""How many partitions are read concurrently."""

RETRY_SECONDS = 60.0
"""How soon a failed log is retried. Each try reports its age, which an alarm watches."""


@dataclass(slots=True)
class LandingResult(Plan):
    """The plan for a log; `held` counts partitions whose records others landed meanwhile.

    Attributes:
        gaps: Where records may be lost. Every planner that settles a gap's manifest reports it.
        tombstones: Records without a value, hence without a line.
        strays: Packed records left out because they hash to another shard.
        waiting: Shards whose parents are not completely landed.
        has_more: Whether something is left for the next time: because of the manifest limit, or because others landed a
            partition meanwhile.
        swept: Deleted objects from landings that died.
        former_ids: Ids of deleted logs with this name whose records were landed.
        behind_seconds: The longest possible wait of an unlanded record, by the last response of each partition; None if
            there was nothing to read.
        has_read: Whether some partition was read without errors.
        troubles: What prevented landing more. Everything else in the result was done.
    """

    lines: int = 0
    gaps: list[LogGap] = field(default_factory=list)
    tombstones: int = 0
    strays: int = 0
    closed: int = 0
    waiting: int = 0
    has_more: bool = False
    swept: int = 0
    former_ids: list[str] = field(default_factory=list)
    behind_seconds: float | None = None
    log_id: str = ""
    has_read: bool = False
    troubles: list[CompactorError] = field(default_factory=list)

    def add_settled(self, settled: Settled) -> None:
        for link in settled.links:
            self.lines += link.lines
            self.tombstones += link.tombstones
            self.strays += link.strays
            self.closed += link.closes
        self.gaps += settled.gaps
        self.held += len({link.partition_id for link in settled.lost})
        if settled.manifest is not None:
            manifest = settled.manifest
            self.manifests.append(PlannedManifest.of(manifest.date, manifest.files, manifest.manifest_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lander:
    """Lands logs. Safe to run concurrently, and after any that died.

    Attributes:
        target_bytes: Returns the target size of a manifest.
        new_lines: Creates the collector for a partition's lines.
        metrics: Receives the age of the oldest waiting record.
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
        """Land all new records of a log, and write manifests for the objects.

        Args:
            log: A log within the allowed prefixes.
            max_manifests: The most manifests to write; the rest is left for the next time.
            dry_run: Write nothing. Records are still read.
            until: Records that arrived later may wait for the next time; by default, those that arrive from now on.

        Returns:
            What was done, and what prevented more. Errors lose no records.

        Raises:
            SettingsError: The log is not within the allowed prefixes, or does not exist.
            StoreUnavailable: The log or the store failed before anything was done.
        """
        if not any(is_within(f"{log}/", each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {log} -> expected it within input.allowed_prefixes: {allowed}"])
        live, chains = self.log.describe(log), LogChains(self.state)
        known_ids = chains.log_ids(log)
        if live is None:
            for log_id in () if dry_run else known_ids:  # its landed objects exist; `verify` reports problems
                list(Landing(chains, log, log_id).settle_left())
            raise SettingsError([f"plan: {log} -> expected an existing log"])
        plan, landing = LandingResult(dry_run=dry_run, log_id=live.log_id), Landing(chains, log, live.log_id)
        plan.former_ids = [each for each in known_ids if each != live.log_id]
        now = self.state.clock.now
        began_at = now()
        reading = Reading(
            log=self.log,
            name=log,
            until=until or began_at,
            new_lines=self.new_lines,
            piece_bytes=self.object_bytes,
            now=now,
            kept=max(KEPT, live.retention - MARGIN),
        )
        partitions = Partitions(landing=landing, of=reading, live=live, began_at=began_at, writes=not dry_run)
        try:
            if not dry_run:
                for former in plan.former_ids:
                    _settle_left(plan, Landing(chains, log, former), is_gone=True)
                _settle_left(plan, landing)
            with closing(partitions):
                self._land_all(partitions, plan, max_manifests)
        except CompactorError as exc:  # completed work stays, and the result shows it
            plan.troubles.append(exc)
        plan.troubles += partitions.troubles
        plan.has_read = partitions.are_read
        plan.waiting, plan.behind_seconds = partitions.waiting, partitions.age_seconds()
        if not dry_run and plan.behind_seconds is not None:
            emit_about(self.metrics, log, {"LandingAgeSeconds": plan.behind_seconds})
        return plan

    def _land_all(self, partitions: Partitions, plan: LandingResult, max_manifests: int) -> None:
        target_bytes = max(self.target_bytes(), 1.0)
        partitions.refresh()
        while (partitions.unread() or partitions.gone) and len(plan.manifests) < max_manifests:
            manifest_id = self._new_id()
            if links := self._landed(partitions, manifest_id, target_bytes):
                settled = self._settled(partitions, plan, manifest_id, links)
                partitions.settled(settled.links, settled.lost)
        plan.has_more = bool(partitions.unread() or partitions.gone or partitions.are_overtaken)
        if partitions.writes:
            partitions.check()
        manifest_id = self._new_id()
        if links := partitions.idle_gaps(manifest_id):
            self._settled(partitions, plan, manifest_id, links)
        if partitions.writes:
            partitions.note_idle()

    def _settled(
        self, partitions: Partitions, plan: LandingResult, manifest_id: str, links: Sequence[LandedLink]
    ) -> Settled:
        """Settle a manifest's landed objects."""
        landing = partitions.landing
        draft = landing.drafted(manifest_id, links)
        if partitions.writes:
            partitions.check()
            settled = landing.settle(draft, is_new=True)
        else:
            gaps = [landing.place(link.partition_id).gap(link) for link in links if link.gap]
            settled = Settled(draft.manifest if draft.manifest.files else None, links, gaps=gaps)
        plan.add_settled(settled)
        return settled

    def _new_id(self) -> str:
        return new_manifest_id(f"{self.state.clock.now():%Y-%m-%d}")

    def _landed(self, partitions: Partitions, manifest_id: str, target_bytes: float) -> list[LandedLink]:
        """Land enough for a manifest, or everything up to the end of a shard, which has successors."""
        links = [link.model_copy(update={"manifest_id": manifest_id}) for link in partitions.gone]
        partitions.gone.clear()
        landing, is_marked, weight_bytes = partitions.landing, False, 0

        def land(reader: PartitionReader) -> tuple[LandedLink, int] | None:
            nonlocal is_marked
            piece = partitions.piece(reader, manifest_id)
            if piece is None:
                return None
            link, lines = piece
            if not partitions.writes:
                link = link.model_copy(update={"size_bytes": len(lines.to_bytes()) if lines.lines else 0})
            else:
                if not is_marked:  # several threads may mark it, each before its own object
                    landing.begin(manifest_id)
                    is_marked = True
                link = landing.land(link, lines)
            return link, link.size_bytes or lines.taken_bytes

        while (
            (room := target_bytes - weight_bytes) > 0
            and not any(link.closes for link in links)
            and (unread := partitions.unread())
        ):
            # Each call must be awaited: its records are not read again this time.
            most = max(PARTITIONS_AT_ONCE, ceil(room / self.object_bytes))
            for link, weight in filter(None, map_ordered(land, unread[:most], threads=PARTITIONS_AT_ONCE)):
                links.append(link)
                weight_bytes += weight
        return links


def emit_about(metrics: MetricsSink, log: LogName, values: dict[str, float]) -> None:
    """Emit metrics for one log, and for all logs."""
    metrics.emit(values)
    metrics.emit(values, {"Log": str(log)})


def _settle_left(plan: LandingResult, landing: Landing, *, is_gone: bool = False) -> None:
    """Finish the work of planners that died, for a log or a former one with its name."""
    for found in landing.settle_left():
        if isinstance(found, StuckError):
            plan.troubles.append(found)
        elif not found.has_begun:
            plan.add_settled(found)
    try:
        plan.swept += landing.sweep(is_gone=is_gone)
    except CompactorError as exc:  # leftovers can wait for an operator; the log's records cannot
        plan.troubles.append(exc)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingTurns:
    """Lands a log in turns while a job runs. Records wait for the next turn.

    A failed log is retried, whatever the error: an operator may have acted.

    Attributes:
        new_lander: Creates the lander; an error there counts as the log's failure.
        notes: Show landing progress to users.
    """

    log: LogName
    every_seconds: float
    max_manifests: int
    new_lander: Callable[[], Lander]
    notes: LandingNotes
    metrics: MetricsSink

    def take(self, _is_stopping: Callable[[], bool] = lambda: False) -> float:
        """Land the log once; never raises. Return the seconds until the next turn, 0 if more waits."""
        return self._take()[0]

    def land_all(self, is_stopping: Callable[[], bool]) -> None:
        """Land everything the log has now.

        Raises:
            Exception: The last turn failed.
        """
        until = self.notes.state.clock.now()  # one limit for all turns, or later turns would find ever more records
        while not is_stopping():
            pause, error = self._take(until)  # a turn writes a limited number of manifests
            if pause and error is not None:
                raise error
            if pause:
                return

    def _take(self, until: datetime | None = None) -> tuple[float, Exception | None]:
        try:
            plan = self.new_lander().land(self.log, max_manifests=self.max_manifests, until=until)
        except Exception as exc:  # noqa: BLE001 - no error of a log may end its landing
            return self._failed(LandingResult(), exc), exc
        if plan.manifests:
            manifests, lines, strays = len(plan.manifests), plan.lines, plan.strays
            log_event("landing.landed", log=self.log, manifests=manifests, lines=lines, strays=strays)
        if plan.troubles:
            return self._failed(plan, plan.troubles[0]), plan.troubles[0]
        self._note(plan)
        return 0.0 if plan.has_more else self.every_seconds, None

    def _failed(self, plan: LandingResult, error: Exception) -> float:
        """Report that landing failed, for all or some partitions; return the pause until the next turn."""
        pause = self.every_seconds if plan.has_read or plan.lines else min(RETRY_SECONDS, self.every_seconds)
        pause = 0.0 if plan.has_more and plan.lines else pause
        note = self._note(plan, described(error))
        emit_about(self.metrics, self.log, {"LandingsFailed": 1.0})
        if plan.behind_seconds is None:  # the longest possible wait of a record that arrived since the last landing
            since, now = note.landed_to or note.expected_since or note.seen_at, self.notes.state.clock.now()
            age_seconds = (now - since).total_seconds() if since is not None else 0.0
            emit_about(self.metrics, self.log, {"LandingAgeSeconds": max(age_seconds, 0.0)})
        failures = note.failures
        log_event("landing.failed", log=self.log, failures=failures, pause_seconds=pause, error=error)
        return pause

    def _note(self, plan: LandingResult, error: str = "") -> LandingProgress:
        now, known = self.notes.state.clock.now(), self.notes.known(self.log)
        if plan.former_ids and plan.log_id != known.log_id:
            log_event("landing.made_again", log=self.log, former_ids=plan.former_ids)
        failures, since = (known.failures + 1, known.failing_since or now) if error else (0, None)
        note = known.model_copy(
            update={
                "log_id": plan.log_id or known.log_id,
                "gaps": known.gaps + len(plan.gaps),
                "failures": failures,
                "failing_since": since,
                "error": error,
            }
        )
        if plan.behind_seconds is not None or not error:  # otherwise nothing was read, and the last note stays valid
            seen = {"expected_since": None, "seen_at": now, "behind_seconds": plan.behind_seconds or 0.0}
            note = note.model_copy(update=seen)
        self.notes.keep(self.log, note)
        return note
