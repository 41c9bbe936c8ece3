"""Whether a refused manifest under a planned id, or beside it, is settled: it names nothing that was not planned.

The id of a planned manifest is no producer's, so a duplicate of it is what someone made of the planned manifest itself.
Ranges and landed objects never change, so once the planned one is committed, a duplicate that names no others adds
nothing to it. A duplicate that names anything else stays open, and so does one of which it is not known what it names.
An empty one, or text that is no JSON, names nothing. The same holds for a refused manifest that has the id itself: then
redrives have what was planned.
"""

from collections.abc import Iterable
from functools import partial

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Accepted, Commit, DeadLetter
from compactor.core.errors import ObjectNotFound, StuckError
from compactor.core.inputs.topics_and_streams import is_topic_or_stream
from compactor.core.kafka.ranges import is_kafka
from compactor.core.layout import duplicate_id, is_within, root_id
from compactor.core.map_ordered import map_ordered
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.state import State
from compactor.manifests.handed_over import files_not_in
from compactor.manifests.partitioning import is_of_new

_ENDING = "-dup-"
_NAMES_NOTHING = frozenset({"empty", "not_json"})  # reasons of dead letters


def settled_duplicates(state: State, manifest_ids: Iterable[str]) -> dict[str, str]:
    """The manifest that settles each refused one, by the id of its dead letter; others are left out."""
    ids = [each for each in manifest_ids if is_of_new(each)]
    found = map_ordered(partial(_settled_by, state), ids)
    return {each: settled_by for each, settled_by in zip(ids, found, strict=True) if settled_by}


def _settled_by(state: State, manifest_id: str) -> str:
    try:
        refused = state.ledger.accepted(manifest_id)
        if refused is None or refused.kind != "refused":
            return ""
        planned = _beside(state, refused) if _ENDING in manifest_id else _in_its_place(state, refused)
        return planned.manifest_id if planned is not None and _adds_nothing(state, refused, planned) else ""
    except (ObjectNotFound, StuckError, ValueError):  # it is not known what it names, so a person has to check
        return ""


def _beside(state: State, refused: Accepted) -> Manifest | None:
    """The planned manifest of which one is a duplicate, if it is committed."""
    holder = state.ledger.accepted(refused.manifest_id.rpartition(_ENDING)[0])
    if holder is None or holder.manifest is None or not _is_duplicate(refused, holder):
        return None
    if not _is_planned(state, holder.manifest):  # guard: a duplicate of a manifest of a producer is not settled with it
        return None
    # guard: a duplicate is settled once the planned manifest is committed, not before
    is_committed = isinstance(state.ledger.outcome(holder.key), Commit)
    return holder.manifest if is_committed else None


def _in_its_place(state: State, refused: Accepted) -> Manifest | None:
    """What redrives have of what was planned for an id, if all of them are committed; under the id of the last one."""
    planned = [each.redrive.manifest for each in RedriveLog(state=state).planned(refused.key)]
    if not planned or not all(isinstance(state.ledger.outcome(each.key), Commit) for each in planned):
        return None
    return planned[-1].model_copy(update={"files": tuple(file for each in planned for file in each.files)})


def _is_duplicate(refused: Accepted, holder: Accepted) -> bool:
    is_refused = refused.kind == "refused" and holder.kind == "manifest"
    return is_refused and duplicate_id(holder.manifest_id, refused.digest) == refused.manifest_id


def _is_planned(state: State, manifest: Manifest) -> bool:
    """Whether a manifest names ranges, gaps and landed objects alone: only a plan, or a redrive of one, has these."""
    landed = state.layout.landed_inputs(root_id(manifest.manifest_id))
    return all(is_topic_or_stream(file.uri) or is_within(file.uri, landed) for file in manifest.files)


def _adds_nothing(state: State, refused: Accepted, planned: Manifest) -> bool:
    letter = state.ledger.outcome_of(refused.key, DeadLetter.generation)
    if isinstance(letter, DeadLetter) and letter.reason in _NAMES_NOTHING:
        return True
    data = state.store.read(state.layout.failed_manifest(refused.manifest_id))
    named = Manifest.model_validate_json(data).files
    versions = {(file.uri, file.etag) for file in planned.files}
    others = [file for file in named if (file.uri, file.etag) not in versions]
    return all(is_kafka(file.uri) for file in others) and not files_not_in(others, planned)
