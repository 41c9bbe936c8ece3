"""Planners of sources on the store of a harness."""

from compactor.core.inputs.source_places import SourcePlace
from compactor.sources.folders.planning import FolderPlanner, OnReplaced
from compactor.sources.input_files import EVERYTHING, FileScope
from compactor.wiring import finding, planning
from tests.support.harness import Harness


def folder_planner(
    harness: Harness, place: str = "/w/raw", *, on_replaced: OnReplaced = "quarantine", scope: FileScope = EVERYTHING
) -> FolderPlanner:
    """What plans one folder, of a fresh process that remembers nothing."""
    app = harness.app()
    made = planning.planner(app)
    return finding.folder_planner(app, [SourcePlace(place)], scope, on_replaced=on_replaced, planner=made)
