"""Puts together what every process may need, also a Lambda function without Spark and Arrow."""

import secrets
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from compactor.adapters.claims import JournalClaims, StreamClaims
from compactor.adapters.local.machine import MachineProcesses, SystemClock
from compactor.adapters.metrics_sinks import metrics_sink
from compactor.adapters.stores import StoreSpec
from compactor.core.crash_points import OnPlanCrashPoint, ignore_plan_crash_point
from compactor.core.layout import Layout
from compactor.core.logs.ports import KafkaLog, Log
from compactor.core.map_ordered import THREADS
from compactor.core.ports import ClaimTable, Clock, MetricsSink, ObjectStore
from compactor.ledger.heartbeat import Runs, StoreClock
from compactor.ledger.landing.progress import LogWatch
from compactor.ledger.ledger import Ledger
from compactor.ledger.sizing import whole_files_bytes
from compactor.ledger.sizing_history import SizingHistory
from compactor.ledger.state import State
from compactor.schema.catalog import CatalogTable
from compactor.settings.settings import Settings
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.sources.claiming import Claimer
from compactor.sources.events.builder import Builder
from compactor.sources.events.sealer import Sealer
from compactor.sources.planner import Planner
from compactor.table.catalog import TableCatalog

if TYPE_CHECKING:
    from compactor.control.snapshot import JobRuns, Notifier


class Replacements(TypedDict, total=False):
    """Components to use in place of the system's clock and of what the settings name. None replaces nothing."""

    clock: Clock | None
    store: ObjectStore | None
    claims: ClaimTable | None  # of one stream
    table_of_claims: ClaimTable | None  # of all streams
    catalog_table: CatalogTable | None
    table_catalog: TableCatalog | None
    metrics: MetricsSink | None
    kafka: KafkaLog | None
    kinesis: Log | None
    job: "JobRuns | None"  # of the control plane, as the notifier
    notifier: "Notifier | None"
    spark: Any  # a Spark session


class Components:
    """The components of one process. Each is made from the settings when it is first used, unless it is replaced."""

    def __init__(self, settings: Settings, **replacements: Unpack[Replacements]) -> None:
        self.settings = settings
        self._neighbours: dict[str, Claimer] = {}
        self._given = replacements
        self.common: Components | None = None  # what has the table of claims, of the components of a stream
        # An attribute that is set hides the cached property of the same name.
        vars(self).update({name: each for name, each in replacements.items() if each is not None})
        self.clock = StoreClock(replacements.get("clock") or SystemClock())

    @cached_property
    def of_streams(self) -> "dict[str, Self]":
        """The components of each stream, by its name. They have the table of claims together."""
        clock, store = self._given.get("clock"), self._given.get("store")
        found = {each.name: type(self)(each, clock=clock, store=store) for each in self.settings.streams}
        for each in found.values():
            each.common = self
        return found

    def renewed(self) -> "Components":
        """New components, also of the streams, with the same store, claims and metrics, which have open clients."""
        new = Components(self.settings, store=self.store, table_of_claims=self.table_of_claims, metrics=self.metrics)
        if self.settings.streams:
            vars(new)["of_streams"] = {name: each.renewed() for name, each in self.of_streams.items()}
        return new

    @cached_property
    def run_id(self) -> str:
        """A unique id that sorts by time."""
        return f"{self.clock.now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"

    @cached_property
    def layout(self) -> Layout:
        return self.settings.layout()

    @cached_property
    def store_spec(self) -> StoreSpec:
        settings = self.settings
        return StoreSpec.of(settings.aws, settings.input.allowed_prefixes, settings.paths.state)

    @cached_property
    def store(self) -> ObjectStore:
        return self.store_spec.open()

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.store, self.layout, self.clock, self.run_id)

    @cached_property
    def state(self) -> State:
        rules = self.settings.manifest_rules()
        return State(store=self.store, layout=self.layout, ledger=self.ledger, clock=self.clock, rules=rules)

    @cached_property
    def history(self) -> SizingHistory:
        return SizingHistory(self.ledger, self.settings.output.target_file_bytes)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.store, self.layout, self.clock, MachineProcesses())

    @cached_property
    def runs_of_shard(self) -> Runs:
        """The runs of the shard that the settings are of; all, if they are of none."""
        return replace(self.runs, shard=self.settings.shard)

    @cached_property
    def metrics(self) -> MetricsSink:
        return metrics_sink(self.settings, self.clock)

    @cached_property
    def claims(self) -> ClaimTable:
        """The claims: in a deployment of several streams all of theirs, as this stream sees them."""
        claims = self.table_of_claims
        return StreamClaims(claims, self.settings.name) if self.settings.member else claims

    @cached_property
    def table_of_claims(self) -> ClaimTable:
        """The table of the claims, as it is."""
        if self.common is not None:
            return self.common.table_of_claims
        builder, layout = self.settings.builder, self.settings.claims_layout
        if builder.claims == JOURNAL_CLAIMS:
            return JournalClaims(self.store, layout.claims_folder)
        if builder.claims:
            from compactor.adapters.aws.dynamo_claims import DynamoClaims  # noqa: PLC0415 - boto3 is slow to load

            client = self.store_spec.client("dynamodb")
            return DynamoClaims(client=client, table=builder.claims, ttl_days=builder.claim_ttl_days)
        self.settings.require_claims()
        from compactor.adapters.local.sqlite.claims import SqliteClaims  # noqa: PLC0415 - only planning needs it

        return SqliteClaims(layout.claims_file)

    @cached_property
    def claimer(self) -> Claimer:
        lease_seconds = self.settings.builder.claim_lease_seconds
        neighbour = self._neighbour if self.settings.member else None
        return Claimer(state=self.state, claims=self.claims, lease_seconds=lease_seconds, neighbour=neighbour)

    def _neighbour(self, stream: str) -> Claimer:
        """What knows the fates of the ids of another stream; see `Claimer`."""
        member = self.settings.member
        if stream not in self._neighbours and member is not None:
            layout = member.layout_of(stream)
            state = replace(self.state, layout=layout, ledger=Ledger(self.store, layout, self.clock, self.run_id))
            self._neighbours[stream] = replace(self.claimer, state=state, neighbour=None)
        return self._neighbours[stream]

    def log_watch(self, *, may_note: bool = False) -> LogWatch:
        """Make what sees how far behind topics and streams landing is, by the notes of jobs."""
        late_seconds = self.settings.landing_late_seconds
        return LogWatch(state=self.state, logs=self.settings.logs, late_seconds=late_seconds, may_note=may_note)

    def manifest_bytes(self) -> float:
        """The stored bytes that a manifest should name, by the compression that earlier commits had."""
        settings = self.settings
        ratio = self.history.stored_ratio()
        return whole_files_bytes(settings.builder.target_manifest_bytes, ratio, settings.output.target_file_bytes)

    def planner_at(self, on_crash_point: OnPlanCrashPoint, groups_at_once: int = THREADS) -> Planner:
        """Make what puts files into manifests, and calls something at each crash point."""
        return Planner(
            state=self.state,
            claimer=self.claimer,
            target_bytes=self.manifest_bytes,
            on_crash_point=on_crash_point,
            groups_at_once=groups_at_once,
        )

    def builder(
        self, *, on_crash_point: OnPlanCrashPoint = ignore_plan_crash_point, groups_at_once: int = THREADS
    ) -> Builder:
        """Make what turns announced files into manifests, those of all streams if there are any."""
        settings = self.settings

        def of(stream: str) -> Components:
            return self.of_streams[stream] if stream else self

        return Builder(
            planner_of=lambda stream: of(stream).planner_at(on_crash_point, groups_at_once),
            allowed_prefixes_of=lambda stream: of(stream).settings.input.allowed_prefixes,
            clock=self.clock,
            watched=settings.input.allowed_prefixes,
            routes=settings.routes if settings.streams else None,
        )

    def sealer(
        self, *, on_crash_point: OnPlanCrashPoint = ignore_plan_crash_point, groups_at_once: int = THREADS
    ) -> Sealer:
        """Make what seals pending parts into manifests."""
        planner = self.planner_at(on_crash_point, groups_at_once)
        return Sealer(planner=planner, max_wait_seconds=self.settings.builder.max_wait_seconds)
