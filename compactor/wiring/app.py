"""A process's settings and the ports that they define."""

import secrets
from dataclasses import replace
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from compactor import __version__
from compactor.adapters.claims import JournalClaims, StreamClaims
from compactor.adapters.local.machine import MachineProcesses, SystemClock
from compactor.adapters.metrics_sinks import metrics_sink
from compactor.adapters.stores import StoreSpec
from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.errors import SettingsError
from compactor.core.layout import Layout
from compactor.core.logs.ports import KafkaLog, Log
from compactor.core.ports import ClaimTable, Clock, MetricsSink, ObjectStore
from compactor.ledger.heartbeat import Heartbeat, Runs, StoreClock
from compactor.ledger.landing.progress import LogWatch
from compactor.ledger.ledger import Ledger
from compactor.ledger.sizing import whole_files_bytes
from compactor.ledger.sizing_history import KEPT_SECONDS, SizingHistory
from compactor.ledger.state import State
from compactor.schema.catalog import CatalogTable
from compactor.schema.registry import SchemaRegistry
from compactor.schema.schema_of_settings import recorded_versions
from compactor.settings.settings import CLAIM_DAYS, Settings
from compactor.settings.types import JOURNAL_CLAIMS
from compactor.table.catalog import TableCatalog

# Each process needs few of these, and would wait for all of them to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from collections.abc import Callable

    from compactor.job.lanes import StreamSlots
    from compactor.job.results import Result
    from compactor.job.shards import Share
    from compactor.sources.input_files import Listing

CATALOG_SECONDS = 5.0
CATALOG_ATTEMPTS = 2
"""The job continues while it waits for the catalog, so it gives up soon; it retries later."""


T = TypeVar("T")


class Replacements(TypedDict, total=False):
    """Ports that replace the system's clock and those from the settings. None keeps the default."""

    clock: Clock | None
    store: ObjectStore | None
    claims: ClaimTable | None  # for one stream
    table_of_claims: ClaimTable | None  # for all streams
    catalog_table: CatalogTable | None
    table_catalog: TableCatalog | None
    metrics: MetricsSink | None
    kafka_log: KafkaLog | None
    kinesis_log: Log | None
    spark: Any  # a Spark session
    listing: "Listing | None"  # of sources
    seen_file: str | None  # the cache of local files; empty for none


class App:
    """One process's settings and their ports. Each is opened on first use, unless it is replaced.

    Args:
        settings: The settings.
        on_crash_point: Called at each crash point.
        on_result: Called when a manifest has ended.
        on_turn: Called at each turn of the job, by each stream's thread.
        leave_others: Leaves manifests with other sources to their planners.
        shared: The slots shared with other streams in one job.
        common: For one of several streams, the source of the common claims table.
        replacements: Replacement ports.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_crash_point: OnCrashPoint = ignore_crash_point,
        on_result: "Callable[[Result], None]" = lambda _: None,
        on_turn: "Callable[[], None]" = lambda: None,
        leave_others: bool = False,
        shared: "StreamSlots | None" = None,
        common: "App | None" = None,
        **replacements: Unpack[Replacements],
    ) -> None:
        if unknown := replacements.keys() - Replacements.__annotations__.keys():
            raise TypeError(f"no port is called {sorted(unknown)}; expected some of {[*Replacements.__annotations__]}")
        self.settings = settings
        self.listing: Listing | None = None
        self.seen_file: str | None = None
        self.on_crash_point = on_crash_point
        self.on_result = on_result
        self.on_turn = on_turn
        self.leave_others = leave_others
        self.shared = shared
        self._common = common
        self._replacements = replacements
        self._opening = RLock()  # some ports open others
        # An attribute hides the cached property with the same name.
        vars(self).update({name: each for name, each in replacements.items() if each is not None})
        self.clock = StoreClock(replacements.get("clock") or SystemClock())
        self._history_since = self.clock.now()

    def opened(self, name: str, open_port: "Callable[[], T]") -> T:
        """A port that few processes can open: its replacement, the opened one, or a new one."""
        with self._opening:  # several threads may ask for it first
            if name not in vars(self):
                vars(self)[name] = open_port()
        found: T = vars(self)[name]
        return found

    def of_stream(
        self, name: str, *, shared: "StreamSlots | None" = None, **replacements: Unpack[Replacements]
    ) -> "App":
        """The same for one stream, which shares the claims table with all others."""
        given = self._replacements
        ports: Replacements = {
            "clock": given.get("clock"),
            "store": given.get("store"),
            "listing": given.get("listing"),
            "seen_file": given.get("seen_file"),
            **replacements,
        }
        settings = next(each for each in self.settings.streams if each.name == name)
        return App(
            settings,
            on_crash_point=self.on_crash_point,
            on_result=self.on_result,
            on_turn=self.on_turn,
            shared=shared,
            common=self,
            **ports,
        )

    @cached_property
    def of_streams(self) -> "dict[str, App]":
        """The same for each stream, by name."""
        return {each.name: self.of_stream(each.name) for each in self.settings.streams}

    def at(self, stream: str) -> "App":
        """The same for a stream; for an empty name, this one, for files of no stream."""
        return self.of_streams[stream] if stream else self

    def renewed(self) -> "App":
        """A new app, including its streams, with the same store, claims and metrics, whose clients stay open.

        For a while it has the same history, too: each reading takes a request for each of the latest commits.
        """
        new = App(self.settings, store=self.store, table_of_claims=self.table_of_claims, metrics=self.metrics)
        now = self.clock.now()
        if abs((now - self._history_since).total_seconds()) >= KEPT_SECONDS:
            self._history_since = now
            vars(self).pop("history", None)
        vars(new)["history"] = self.history
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

    def manifest_bytes(self) -> float:
        """The target size of a manifest in stored bytes, based on earlier commits' compression."""
        settings = self.settings
        ratio = self.history.stored_ratio()
        return whole_files_bytes(settings.builder.target_manifest_bytes, ratio, settings.output.target_file_bytes)

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.store, self.layout, self.clock, MachineProcesses())

    @cached_property
    def runs_of_shard(self) -> Runs:
        """The runs of the settings' shard; all if they have none."""
        return replace(self.runs, shard=self.settings.shard)

    @cached_property
    def heartbeat(self) -> Heartbeat:
        return Heartbeat(
            self.store,
            self.layout,
            self.clock,
            self.run_id,
            MachineProcesses().this(),
            release=__version__,
            shard=self.settings.shard_text,
            learn_time=self.clock.learn,
        )

    @cached_property
    def share(self) -> "Share":
        """The manifests that the job takes."""
        from compactor.job.shards import ShardShare, Share

        shard = self.settings.shard
        return Share() if shard is None else ShardShare(shard=shard, run_id=self.run_id, runs=self.runs)

    @cached_property
    def metrics(self) -> MetricsSink:
        return metrics_sink(self.settings, self.clock)

    @cached_property
    def claims(self) -> ClaimTable:
        """The claims: in a deployment with several streams, the common ones as seen by this stream."""
        claims = self.table_of_claims
        return StreamClaims(claims, self.settings.name) if self.settings.member else claims

    @cached_property
    def claims_if_any(self) -> ClaimTable | None:
        """The claims; None if the settings have no place for them, so that nothing is ever planned."""
        try:
            return self.claims
        except SettingsError:
            return None

    @cached_property
    def table_of_claims(self) -> ClaimTable:
        """The claims table itself."""
        if self._common is not None:
            return self._common.table_of_claims
        builder, layout = self.settings.builder, self.settings.claims_layout
        if builder.claims == JOURNAL_CLAIMS:
            return JournalClaims(self.store, layout.claims_folder)
        if builder.claims:
            from compactor.adapters.aws.dynamo_claims import DynamoClaims

            client = self.store_spec.client("dynamodb")
            return DynamoClaims(client=client, table=builder.claims, ttl_days=CLAIM_DAYS)
        self.settings.require_claims()
        from compactor.adapters.local.sqlite.claims import SqliteClaims

        return SqliteClaims(layout.claims_file)

    @cached_property
    def registry(self) -> SchemaRegistry:
        """The recorded schema versions, for reading. Does not need the schema file."""
        return recorded_versions(self.settings, self.store, self.clock)

    @cached_property
    def catalog_table(self) -> CatalogTable | None:
        """The output's table in the Glue Data Catalog; None if not configured."""
        if not self.settings.schema.table:
            return None
        from compactor.adapters.aws.glue_table import GlueTable

        database, table = self.settings.schema.table.split(".")
        spec = replace(self.store_spec, timeout_seconds=CATALOG_SECONDS, attempts=CATALOG_ATTEMPTS)
        return GlueTable(client=spec.client("glue"), database=database, table=table)


def log_watch(app: App, *, may_note: bool = False) -> LogWatch:
    """Create the watch for landing lags of topics and streams, based on the jobs' notes."""
    late_seconds = app.settings.landing_late_seconds
    return LogWatch(state=app.state, logs=app.settings.logs, late_seconds=late_seconds, may_note=may_note)
