"""Puts together what erases lines on request. It starts no engine."""

from dataclasses import replace

from compactor.adapters.local.native.kernel import NativeGrok
from compactor.core.documents.records import Commit, Inputs
from compactor.ledger.visible import Visible
from compactor.ops.forget.erasing_stager import ErasingStager
from compactor.ops.forget.forgetter import Forgetter
from compactor.ops.forget.inputs import InputEraser
from compactor.ops.forget.scan import ForgetScanner
from compactor.ops.forget.search import RowSearch
from compactor.ops.forget.wanted import Wanted, compared_type, path_of
from compactor.ops.rebuild.rebuilder import Rebuilder
from compactor.ops.table.metadata_eraser import MetadataEraser
from compactor.table.merging.committed_rows import CommittedRows
from compactor.wiring.job.app import App


def forgetter(app: App, *, key: str, values: frozenset[str], inputs: Inputs, by: str) -> Forgetter:
    """Make what erases the lines that have some values.

    Args:
        app: The components of the process.
        key: Whose values they are; see `compactor.ops.forget.wanted.path_of`.
        values: The values.
        inputs: What becomes of input files.
        by: Who asks.
    """
    path = path_of(key)
    column = next((each for each in app.registry.latest().columns if each.key == path[0]), None)
    wanted = Wanted(path, values, compared_type(column, path))
    rows = CommittedRows(app.store, Visible(app.state))
    search = RowSearch(rows=rows, registry=app.registry, wanted=wanted)

    def rebuilder_for(erasure: str) -> Rebuilder:
        def stager_for(commit: Commit) -> ErasingStager:
            return ErasingStager(
                state=app.state,
                search=search,
                commit=commit,
                erasure=erasure,
                compression=app.layout.compression,
                in_place=app.settings.output.publish == "in_place" or app.is_in_place,  # no engine does it
                on_crash_point=app.on_crash_point,
            )

        return app.rebuilder_with(stager_for)

    def after() -> list[str]:
        """Have the table forget all that names what was replaced, but for what failed commits left."""
        if not app.has_table:
            return []
        maintainer = replace(app.maintainer(keep_days=0, keep_snapshots=1), always_merges=True, originals=None)
        kept = MetadataEraser(maintainer=maintainer).erase()
        app.merger().leftovers.remove()
        return kept

    return Forgetter(
        state=app.state,
        scanner=ForgetScanner(state=app.state, search=search),
        inputs=InputEraser(state=app.state, wanted=wanted, limits=app.limits, inputs=inputs, decoder_of=NativeGrok),
        rebuilder_for=rebuilder_for,
        key=key,
        by=by,
        after=after,
    )
