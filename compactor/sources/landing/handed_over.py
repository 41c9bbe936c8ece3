"""Hands what was planned for an id that is bound to something else to a redrive of that id.

A planner binds the id of a manifest before it writes the manifest. But the name of the draft shows the id earlier, so
someone may have put something else under the name of the manifest. Once a job has bound the id to that, no manifest of
this id can have what links give to it. A redrive of the id can: a job takes in a redrive that is on record unchanged,
if links give all that it names to its root.

Each planner that settles the draft comes to the same files, as links stay, and goes through the numbers of redrives
from 1. A redrive on record takes its files out of what is left, unless the id of that redrive is bound to something
else: then it never takes effect. At the first number without a record, the planner records a redrive of what is left.
It skips a number whose id is bound already: what a delayed planner records there later never takes effect.
So no record that may take effect names a file that one of a lower number names, and each number has one record:
nothing is named twice, however many planners there are. The draft stays until a job has begun with all of it, so that
any planner can go on where others died.
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
    """Whether redrives of what was planned for an id are on record and written."""
    entries = RedriveLog(state=state).planned(holder.key)
    return bool(entries) and all(each.fate != "unwritten" for each in entries)


def hand_over(state: State, holder: Accepted, planned: Manifest) -> tuple[Manifest | None, bool]:
    """Record the files of a plan as a redrive of the id that they were planned for, and write its manifest.

    Args:
        state: Has the records.
        holder: What the id is bound to.
        planned: What links give to the id.

    Returns:
        The manifest of the last redrive that was written, if any; and whether a job has begun with all of the files.
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
        # guard: a redrive whose id is taken has nothing of a plan
        if redrive is None or not _may_take_effect(redrive, bound):
            continue
        still_left = files_not_in(left, redrive.manifest)
        if still_left == left:  # it redrives other files, of the manifest that has the id
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
    """Whether the id of a redrive is bound to it, or not bound yet. A refused one may be redriven in turn."""
    if bound is None or bound.manifest is None:
        return bound is None or bound.digest == digest(redrive.manifest.to_json())
    return has_same_files(bound.manifest, redrive.manifest)


def _versions(files: Iterable[ManifestFile]) -> frozenset[tuple[str, str]]:
    return frozenset((canonical(file.uri), file.etag or "") for file in files)


def files_not_in(files: Sequence[ManifestFile], manifest: Manifest) -> list[ManifestFile]:
    """The files that a manifest does not have."""
    uris = {canonical(file.uri) for file in manifest.files}
    return [file for file in files if canonical(file.uri) not in uris]
