"""Planners of sources on the store of a harness."""

from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.adapters.local.sqlite.spilled_files import SqliteSpill
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import folder
from compactor.sources.folders.planning import FolderPlanner, OnReplaced
from compactor.wiring import planning
from tests.support.harness import Harness


def folder_planner(
    harness: Harness, place: str = "/w/raw", *, on_replaced: OnReplaced = "quarantine", with_hidden: bool = False
) -> FolderPlanner:
    """What plans one folder, of a fresh process that remembers nothing."""
    app = harness.app()
    return FolderPlanner(
        planner=planning.planner(app),
        allowed_prefixes=app.settings.input.allowed_prefixes,
        listing=lambda source: app.store.list(folder(source.folder)),
        sources=[SourcePlace(place)],
        seen=LocalSeenFiles(app.store, ""),
        new_spill=SqliteSpill,
        on_replaced=on_replaced,
        with_hidden=with_hidden,
    )
