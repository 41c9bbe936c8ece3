"""Builds the writers of manifests: for files announced by S3, and for those found by a command."""

from dataclasses import replace
from functools import cache

from compactor.core.map_ordered import THREADS
from compactor.ledger.ledger import Ledger
from compactor.sources.claiming import Claimer
from compactor.sources.events.builder import Builder
from compactor.sources.events.sealer import Sealer
from compactor.sources.planner import Planner
from compactor.wiring.app import App


def claimer(app: App) -> Claimer:
    """Create the claimer of files."""
    member = app.settings.member
    lease_seconds = app.settings.claim_lease_seconds
    own = Claimer(state=app.state, claims=app.claims, lease_seconds=lease_seconds)
    if member is None:
        return own

    @cache
    def neighbour(stream: str) -> Claimer:
        layout = member.layout_of(stream)
        ledger = Ledger(app.store, layout, app.clock, app.run_id)
        return replace(own, state=replace(app.state, layout=layout, ledger=ledger))

    return replace(own, neighbour=neighbour)


def planner(app: App, *, groups_at_once: int = THREADS) -> Planner:
    """Create the planner."""
    return Planner(
        state=app.state,
        claimer=claimer(app),
        target_bytes=app.manifest_bytes,
        on_crash_point=app.on_crash_point,
        groups_at_once=groups_at_once,
    )


def builder(app: App, *, groups_at_once: int = THREADS) -> Builder:
    """Create the builder of manifests from announced files, for all streams if there are any."""
    settings = app.settings

    return Builder(
        planner_of=lambda stream: planner(app.at(stream), groups_at_once=groups_at_once),
        allowed_prefixes_of=lambda stream: app.at(stream).settings.input.allowed_prefixes,
        clock=app.clock,
        watched=settings.input.allowed_prefixes,
        routes=settings.routes if settings.streams else None,
    )


def sealer(app: App, *, groups_at_once: int = THREADS) -> Sealer:
    """Create the sealer of pending parts."""
    made = planner(app, groups_at_once=groups_at_once)
    return Sealer(planner=made, max_wait_seconds=app.settings.builder.max_wait_seconds)
