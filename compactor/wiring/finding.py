"""Builds what finds unplanned files for commands: in a folder, or in an inventory."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import folder, is_s3
from compactor.sources.input_files import EVERYTHING, FileScope, check_prefix, dated_files, source_files
from compactor.sources.inventory.planning import Rate, check_can_plan, gate_of, planned_in_rounds
from compactor.sources.plan import Plan
from compactor.sources.planner import Planner
from compactor.sources.unplanned import Unplanned
from compactor.wiring.app import App
from compactor.wiring.planning import planner

if TYPE_CHECKING:
    from compactor.ndjson.kinds.formats import Formats
    from compactor.sources.folders.history import SummarisedFiles
    from compactor.sources.folders.planning import FolderPlanner, OnReplaced
    from compactor.sources.input_files import Listing
    from compactor.sources.spill import SpilledFile

# Functions plan no folders, and have no SQLite.
# ruff: noqa: PLC0415


def plan(
    app: App,
    prefix: str,
    scope: FileScope = EVERYTHING,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    on_replaced: "OnReplaced" = "quarantine",
    using: Planner | None = None,
) -> Plan:
    """Write manifests for the files in a prefix that are in none.

    Args:
        app: The ports.
        prefix: A folder within the allowed prefixes.
        scope: Which of the files.
        limit: The most manifests to write, earliest dates first; None for no limit.
        dry_run: Claim and write nothing.
        on_replaced: What to do with a local file whose earlier version has rows.
        using: The planner; None for the configured one.

    Raises:
        SettingsError: The prefix is outside the allowed ones.
    """
    check_prefix(app.state, prefix, app.settings.input.allowed_prefixes)
    sources, made = [SourcePlace(folder(prefix).rstrip("/") or "/")], using or planner(app)
    if not is_s3(prefix):  # guard: a local file that was touched, renamed or appended to is not planned as a new one
        of_folder = folder_planner(app, sources, scope, on_replaced=on_replaced, planner=made)
        found = of_folder.plan(limit=limit, dry_run=dry_run)
        if not dry_run and scope == EVERYTHING:
            note_replaced(app, found, sources)
        return found

    def listed(plan: Plan) -> "Iterator[SpilledFile]":
        files = source_files(_listing(app), sources, plan, skips=_skips(app), with_hidden=scope.hidden)
        return dated_files(files, scope, plan, app.clock.now())

    with unplanned(app, made, listed) as files:
        return made.plan(files, limit=limit, dry_run=dry_run)


def note_replaced(app: App, made: Plan, sources: "Sequence[SourcePlace]") -> None:
    """Record the replaced files that a plan left out, for all commands; takes out those that are given up."""
    from compactor.core.documents.records import ReplacedFile
    from compactor.ledger.accounts import replaced
    from compactor.ledger.accounts.settling import Settling
    from compactor.sources.folders.matching import is_of

    now = app.clock.now()
    found = [
        ReplacedFile(uri=each.uri, etag=each.etag, manifest_id=each.manifest_id, detail=each.detail, found_at=now)
        for each in made.left_out
        if each.reason == "replaced"
    ]
    replaced.note_replaced(app.state, found, lambda uri: is_of(sources, uri))
    if found:
        checked = Settling(app.state).files(replaced.replaced_files(app.state))
        given_up = {(each.uri, each.etag) for each in checked if each.dismissed}
        made.left_out = [each for each in made.left_out if (each.uri, each.etag) not in given_up]


def folder_planner(
    app: App,
    sources: Sequence[SourcePlace],
    scope: FileScope = EVERYTHING,
    *,
    on_replaced: "OnReplaced" = "quarantine",
    planner: Planner,
) -> "FolderPlanner":
    """The planner of sources whose files may be touched, renamed or appended to."""
    from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles, LocalSummarisedFiles, seen_file
    from compactor.adapters.local.sqlite.spilled_files import SqliteSpill
    from compactor.sources.folders.history import StoredSummarisedFiles
    from compactor.sources.folders.planning import FolderPlanner
    from compactor.wiring.engines import formats_of
    from compactor.wiring.opening import grok_reader_of

    @cache
    def formats() -> "Formats":
        return formats_of(app.settings, grok_reader_of(app))

    seen = seen_file(app.layout) if app.seen_file is None else app.seen_file
    # Local files may be renamed, and appended to, so an index by name, as for S3, is not enough.
    summarised: SummarisedFiles | None = LocalSummarisedFiles(seen) if seen else None
    if is_s3(app.layout.state) and all(is_s3(place.folder) for place in sources):
        summarised = StoredSummarisedFiles(app.store, app.layout)
    return FolderPlanner(
        planner=planner,
        allowed_prefixes=app.settings.input.allowed_prefixes,
        listing=_listing(app),
        skips=_skips(app),
        sources=sources,
        seen=LocalSeenFiles(app.store, seen, lambda head: formats().has_lines(head)),
        summarised=summarised,
        new_spill=SqliteSpill,
        scope=scope,
        on_replaced=on_replaced,
        takes_grown=app.settings.input.on_grown == "tail",
    )


def _listing(app: App) -> "Listing":
    from compactor.adapters.source_listing import SourceListing

    return app.listing or SourceListing(app.store, app.store_spec.confined)


def _skips(app: App) -> Callable[[str], str]:
    """Why a file is no input of the settings, by its URI; see `source_files`."""
    member, name, rules = app.settings.member, app.settings.name, app.state.rules

    def reason(uri: str) -> str:
        if rules.excludes(uri):
            return "excluded"
        # guard: a plan leaves the files of other streams
        return "other_stream" if member is not None and member.routes.stream_of(uri) != name else ""

    return reason


@contextmanager
def unplanned(
    app: App, planner: Planner, found: "Callable[[Plan], Iterable[SpilledFile]]", *, may_be_gone: bool = False
) -> Iterator[Unplanned]:
    """Files that are in no manifest, for a planner; see `Unplanned`."""
    from compactor.adapters.local.sqlite.spilled_files import SqliteSpill

    with closing(SqliteSpill()) as spill:
        yield Unplanned(
            state=app.state,
            claimer=planner.claimer,
            allowed_prefixes=app.settings.input.allowed_prefixes,
            found=found,
            spill=spill,
            may_be_gone=may_be_gone,
            page_files=planner.page_files,
        )


def plan_inventory(
    app: App,
    found: "Callable[[Plan], Iterable[SpilledFile]]",
    rate: Rate,
    *,
    on_wait: Callable[[str], None],
    limit: int | None = None,
    dry_run: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    using: Planner | None = None,
) -> Plan:
    """Write manifests for files in an inventory; see `planned_in_rounds`.

    Args:
        app: The ports.
        found: Yields the files, and counts what else the inventory lists.
        rate: How fast it releases manifests.
        on_wait: Called when it begins to wait, with the cause.
        limit: The most manifests to write; None for any number.
        dry_run: Claim and write nothing.
        sleep: Waits for a number of seconds.
        using: The planner; None for the configured one.

    Raises:
        SettingsError: The job reads any version of a file.
    """
    check_can_plan(app.settings)
    gate, made = gate_of(app.settings, app.state, rate, on_wait, sleep), using or planner(app)
    with unplanned(app, made, found, may_be_gone=True) as files:
        return planned_in_rounds(made, files, gate, limit=limit, dry_run=dry_run, sleep=sleep)
