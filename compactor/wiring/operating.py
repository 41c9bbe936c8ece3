"""Builds the objects behind operator commands, which read records and start no job."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from compactor.adapters.local.native.kernel import NativeGrok, digest_kernel
from compactor.adapters.local.native.module import is_installed
from compactor.core.errors import SettingsError
from compactor.core.inputs.dates import EARLIEST_DATE
from compactor.core.layout import is_s3
from compactor.core.logs.names import is_log
from compactor.schema.catalog import Published, catalog_columns, published
from compactor.schema.schema_of_settings import parsed_schema, recorded_versions
from compactor.settings.control_policy import STALL_SECONDS
from compactor.table.standing import ListedTable
from compactor.upkeep.cleaner import Cleaner
from compactor.upkeep.expiring import BY_JOB, Expirer
from compactor.upkeep.retention import Retention
from compactor.wiring.app import App, log_watch
from compactor.wiring.engine_choice import engine_choice
from compactor.wiring.opening import grok_reader_of, table_catalog

# Each command needs one of these, and a short command would wait for all of them to load.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from compactor.adapters.aws.s3.versions import ObjectVersion
    from compactor.ops.canary import CanaryChecker, Progress, Stage
    from compactor.ops.closing.closer import Closer
    from compactor.ops.rebuild.damaged import RebuildScanner
    from compactor.ops.redrive.redriver import Redriver
    from compactor.ops.status.reading import StatusReader
    from compactor.ops.trace.tracer import Tracer
    from compactor.ops.verify.verifier import Verifier


def listed_table(app: App) -> ListedTable | None:
    """The output's table; None if not configured."""
    if not app.settings.has_table:
        return None
    table, control = app.settings.table, app.settings.control
    upkeep = {"maintain": table.maintain_hours, "merge": table.merge_hours}
    return ListedTable(
        name=table.name,
        catalog=lambda: table_catalog(app),
        late_seconds=table.commit_seconds + STALL_SECONDS,
        shards=control.shards,
        upkeep=tuple(name for name, hours in upkeep.items() if hours),
    )


def publish_columns(app: App) -> Published:
    """Add the latest schema version's columns to the table in the Glue Data Catalog.

    Raises:
        SettingsError: No table is configured.
    """
    if app.catalog_table is None:
        raise SettingsError(['schema.table: "" -> expected the Glue table of the output, as database.table'])
    schema = app.registry.latest()
    differed = app.catalog_table.add(catalog_columns(schema, app.settings.metadata_columns))
    return published(app.catalog_table.name, schema.version, differed)


def earlier_version(app: App, uri: str, version_id: str) -> tuple["ObjectVersion", Callable[[], None]]:
    """An earlier version of an object in S3, and what makes it the current one.

    Raises:
        ObjectNotFound: The bucket keeps no such version.
    """
    from compactor.adapters.aws.s3.versions import earlier_version, make_current

    client = app.store_spec.client("s3")
    found = earlier_version(client, uri, version_id)
    return found, lambda: make_current(client, found)


def check_schema_file(app: App, data: bytes, uri: str) -> None:
    """Check a schema file that is not in use yet.

    Raises:
        SettingsError: Lists its faults, or every contradiction to the recorded columns.
    """
    declared = parsed_schema(app.settings, data, uri)
    recorded_versions(app.settings, app.store, app.clock, declared).check_declared()


def verifier(app: App, *, deep: bool = False) -> "Verifier":
    """Make what verifies the output; with `deep` it compares values as well."""
    from compactor.ops.verify.files import CommitFiles
    from compactor.ops.verify.verifier import Verifier

    files, contents = CommitFiles(app.state, app.registry), None
    if deep:
        from compactor.ops.verify.contents import DeepVerifier  # takes a tenth of a second

        contents = DeepVerifier(
            state=app.state,
            registry=app.registry,
            visible=files.visible,
            decoder_of=NativeGrok,
            new_kernel=digest_kernel if is_installed() else None,
        )
    return Verifier(state=app.state, files=files, table=listed_table(app), contents=contents)


def closer(app: App) -> "Closer":
    """Make what closes dates."""
    from compactor.ops.closing.closer import Closer

    close_after = timedelta(days=app.settings.retention.close_after_days)
    return Closer(state=app.state, verifier=verifier(app), close_after=close_after)


def close_quiet_dates(app: App) -> None:
    """Close quiet dates, if an operator has closed dates here before."""
    made = closer(app)
    if made.has_begun():
        made.close()


def date_expirer(app: App, who: str) -> Expirer:
    """Create the expirer for expired dates, which records the given operator.

    Raises:
        SettingsError: A table lists the files to be deleted.
    """
    if app.settings.has_table:
        because = "because the table would continue to list the files of expired dates"
        raise SettingsError([f'table.name: "{app.settings.table.name}" -> expected none, {because}'])
    return Expirer(app.state, who, app.on_crash_point)


def rebuild_scanner(app: App) -> "RebuildScanner":
    """Create the scanner for manifests to rebuild."""
    from compactor.ops.rebuild.damaged import RebuildScanner
    from compactor.ops.verify.files import CommitFiles

    return RebuildScanner(state=app.state, files=CommitFiles(app.state, app.registry))


def cleaner(app: App, who: str = BY_JOB) -> Cleaner:
    """Create the cleaner of expired objects, which records the given operator."""
    retention = Retention(app.state, app.runs.living_among)
    return Cleaner(app.state, retention, Expirer(app.state, who), has_table=app.settings.has_table)


def redriver(app: App, who: str = BY_JOB) -> "Redriver":
    """Create the redriver for dead letters, quarantined files and rejected lines, which records the given operator."""
    from compactor.ops.redrive.planner import RedrivePlanner
    from compactor.ops.redrive.redriver import Redriver
    from compactor.ops.redrive.reject_lines import Recheck
    from compactor.sources.file_search import FileSearch

    settings, allowed_prefixes = app.settings, app.settings.input.allowed_prefixes
    redrive_planner = RedrivePlanner(
        state=app.state,
        search=FileSearch(state=app.state, allowed_prefixes=allowed_prefixes),
        claims=app.claims_if_any,
        is_any_format=settings.input.format != "ndjson",
        lease_seconds=settings.claim_lease_seconds,
    )
    grok = grok_reader_of(app)
    recheck = Recheck(
        max_line_bytes=settings.input.max_line_bytes,
        has_one_parser=engine_choice(settings.convert).name == "native",
        grok=grok.decoder if grok else None,
    )
    return Redriver(
        state=app.state, redrive_planner=redrive_planner, recheck=recheck, by=who, on_crash_point=app.on_crash_point
    )


def tracer(app: App) -> "Tracer":
    """Create the tracer."""
    from compactor.ops.trace.finding import InputFinder
    from compactor.ops.trace.tracer import Tracer
    from compactor.sources.file_search import FileSearch

    allowed_prefixes = app.settings.input.allowed_prefixes
    search = FileSearch(state=app.state, allowed_prefixes=allowed_prefixes, skip_unreadable=True)
    return Tracer(
        state=app.state,
        rules=app.settings.retry_rules,
        inputs=InputFinder(state=app.state, search=search, claims=app.claims_if_any),
        table=listed_table(app),
    )


def status_reader(app: App) -> "StatusReader":
    """Create the reader of the job's status."""
    from compactor.ops.status.health import Rules
    from compactor.ops.status.reading import StatusReader

    settings = app.settings
    return StatusReader(
        state=app.state,
        runs=app.runs,
        rules=Rules(
            sla_seconds=settings.sla_seconds,
            stall_seconds=STALL_SECONDS,
            max_wait_seconds=settings.builder.max_wait_seconds,
            is_on_glue=is_s3(app.layout.state),
            shards=settings.control.shards,
            suggest=settings.suggestions,
        ),
        allowed_prefixes=settings.input.allowed_prefixes,
        target_file_bytes=settings.output.target_file_bytes,
        registry=lambda: recorded_versions(settings, app.store, app.clock),
        table=listed_table(app),
        logs=log_watch(app),
    )


def canary_checker(app: App) -> "CanaryChecker":
    """Create the checker that sends a canary through a deployment.

    Raises:
        SettingsError: The settings do not describe a deployment.
    """
    from compactor.ops.canary import CanaryChecker, Progress

    settings, trace = app.settings, tracer(app).trace
    if not is_s3(settings.paths.state):
        raise SettingsError([f'paths.state: "{settings.paths.state}" -> expected a place on S3, as a deployment has'])

    files = next((each for each in settings.input.allowed_prefixes if not is_log(each)), None)
    if files is None:
        raise SettingsError(["input.allowed_prefixes: only topics -> expected a place for the canary's file"])

    def look(uri: str) -> "Progress":
        found = trace(uri, days=1)
        return Progress(cast("Stage", str(found.state)), found.manifest_id, found.date, found.message)

    return CanaryChecker(
        state=app.state,
        input_place=files,
        date=EARLIEST_DATE,
        has_rescued=settings.input.discovery == "full",
        look=look,
        pause=time.sleep,
        seconds=time.monotonic,
    )
