"""Builds what finds unplanned files for commands: in a prefix, or in an inventory."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from compactor.sources.inventory.planning import Rate, check_can_plan, gate_of, planned_in_rounds
from compactor.sources.plan import Plan
from compactor.sources.planner import Planner
from compactor.sources.unplanned import EVERYTHING, FileScope, Unplanned, check_prefix, listed_below
from compactor.wiring.app import App
from compactor.wiring.planning import planner

if TYPE_CHECKING:
    from compactor.sources.spill import SpilledFile


def plan(
    app: App,
    prefix: str,
    scope: FileScope = EVERYTHING,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    using: Planner | None = None,
) -> Plan:
    """Write manifests for the files in a prefix that are in none.

    Args:
        app: The ports.
        prefix: A folder within the allowed prefixes.
        scope: Which of the files.
        limit: The most manifests to write, earliest dates first; None for no limit.
        dry_run: Claim and write nothing.
        using: The planner; None for the configured one.

    Raises:
        SettingsError: The prefix is outside the allowed ones.
    """
    member, name = app.settings.member, app.settings.name

    def is_of_other_stream(uri: str) -> bool:
        return member is not None and member.routes.stream_of(uri) != name

    check_prefix(app.state, prefix, app.settings.input.allowed_prefixes)
    listed, made = partial(listed_below, app.state, prefix, scope, is_of_other_stream), using or planner(app)
    with unplanned(app, made, listed) as files:
        return made.plan(files, limit=limit, dry_run=dry_run)


@contextmanager
def unplanned(
    app: App, planner: Planner, found: "Callable[[Plan], Iterable[SpilledFile]]", *, may_be_gone: bool = False
) -> Iterator[Unplanned]:
    """Files that are in no manifest, for a planner; see `Unplanned`."""
    from compactor.adapters.local.sqlite.spilled_files import SqliteSpill  # noqa: PLC0415 - functions need none

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
