"""Moves planned content whose id is bound to something else into a redrive of that id.

A planner binds a manifest's id before it writes the manifest. But the draft's name reveals the id earlier, so other
content may have been put under the manifest's name. Once a job has bound the id to that, no manifest with this id can
have what its links give it. A redrive of the id can: a job takes in a recorded redrive unchanged, if links give all of
its files to its root.

Each planner that settles the draft gets the same files, as links are permanent, and goes through the redrive numbers
from 1. A recorded redrive takes its files out of the rest, unless its id is bound to something else: then it never
takes effect. At the first number without a record, the planner records a redrive of the rest. It skips a number whose
id is bound already: a late record there never takes effect. So no record that may take effect names a file of a lower
number, and each number has one record: nothing is named twice, however many planners there are. The draft stays until a
job has started all of it, so that any planner can continue where others died.
"""

from collections.abc import Iterable, Sequence
from itertools import count

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Accepted, Redrive
from compactor.core.layout import canonical, digest, redriven_id
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.telemetry.logs import log_event


def has_same_files(manifest: Manifest, other: Manifest) -> bool:
    """Whether two manifests name the same versions of the same files."""
    return _versions(manifest.files) == _versions(other.files)


def is_handed_over(state: State, holder: Accepted) -> bool:
    """Whether redrives of an id's planned content are recorded and written."""
    entries = RedriveLog(state=state).planned(holder.key)
    return bool(entries) and all(each.fate != "unwritten" for each in entries)


def hand_over(state: State, holder: Accepted, planned: Manifest) -> tuple[Manifest | None, bool]:
    """Record planned files as a redrive of their original id, and write its manifest.

    Args:
        state: Source of the records.
        holder: The record to which the id is bound.
        planned: What the links give to the id.

    Returns:
        The last redrive manifest that was written, if any; and whether a job has started all of the files.
    """
    log, has_begun, written = RedriveLog(state=state), True, None
    # guard: a plan gives nothing to a redrive that another one has
    left = files_not_in(planned.files, holder.manifest) if holder.manifest is not None else list(planned.files)
    for number in count(1):
        if not left:
            break
        new_id = redriven_id(holder.manifest_id, number)
        bound, redrive = state.ledger.accepted(new_id), log.at(holder.key, number)
        if redrive is None and bound is None:
            keys = {"manifest_id": new_id, "files": tuple(left)}
            redrive = _recorded(log, holder, number, planned.model_copy(update=keys))
        # guard: a redrive whose id is in use gets nothing from a plan
        if redrive is None or not _may_take_effect(redrive, bound):
            continue
        still_left = files_not_in(left, redrive.manifest)
        if still_left == left:  # it redrives other files, from the manifest that has the id
            continue
        left = still_left
        if bound is None or not state.ledger.record_names(bound.key):
            has_begun, written = False, redrive.manifest
            log.deliver(redrive)
    return written, has_begun


def _recorded(log: RedriveLog, holder: Accepted, number: int, manifest: Manifest) -> Redrive | None:
    redrive = Redrive(
        kind="planned",
        source=holder.manifest_id,
        number=number,
        counts={"planned": len(manifest.files)},
        manifest=manifest,
        run_id=log.state.ledger.run_id,
        redriven_at=log.state.clock.now(),
    )
    if log.record(holder.key, redrive):
        new_id, kind, counts = manifest.manifest_id, redrive.kind, redrive.counts
        log_event("manifest.redriven", source=redrive.source, manifest_id=new_id, kind=kind, counts=counts)
    return log.at(holder.key, number)


def _may_take_effect(redrive: Redrive, bound: Accepted | None) -> bool:
    """Whether a redrive's id is bound to it, or not bound yet. A refused one may be redriven in turn."""
    if bound is None or bound.manifest is None:
        return bound is None or bound.digest == digest(redrive.manifest.to_json())
    return has_same_files(bound.manifest, redrive.manifest)


def _versions(files: Iterable[ManifestFile]) -> frozenset[tuple[str, str]]:
    return frozenset((canonical(file.uri), file.etag or "") for file in files)


def files_not_in(files: Sequence[ManifestFile], manifest: Manifest) -> list[ManifestFile]:
    """The files missing from a manifest."""
    uris = {canonical(file.uri) for file in manifest.files}
    return [file for file in files if canonical(file.uri) not in uris]
