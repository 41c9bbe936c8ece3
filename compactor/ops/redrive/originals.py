"""Reads the manifest of a dead letter again, by the settings of today."""

from collections.abc import Sequence
from datetime import UTC, datetime

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.documents.records import Accepted, Commit, DeadLetter
from compactor.core.errors import ManifestError, ObjectNotFound
from compactor.job.steps.planned_ranges import redrive_on_record
from compactor.ledger.state import State


def original_of(
    letter: DeadLetter, accepted: Accepted | None, state: State, allowed_prefixes: Sequence[str]
) -> Manifest:
    """The original of a dead letter.

    Raises:
        ManifestError: It is still wrong.
    """
    manifest = accepted.manifest if accepted is not None else None
    return parse_manifest(
        _kept(letter, state) if manifest is None else manifest.to_json(),
        uri=letter.source_uri,
        # Where the original has no date in it, it keeps the date that it got as a dead letter.
        modified_at=datetime.fromisoformat(letter.date).replace(tzinfo=UTC),
        allowed_prefixes=allowed_prefixes,
        redriven_folder=state.layout.redriven_folder,
        rules=state.rules,
    )


def _kept(letter: DeadLetter, state: State) -> bytes:
    uri = state.layout.failed_manifest(letter.manifest_id)
    info = state.store.stat(uri)
    if info is not None:
        state.rules.check_length(uri, info.size_bytes)
    try:
        return state.store.read(uri)
    except ObjectNotFound as exc:
        raise ManifestError(letter.reason, f"{uri}: the original is gone; expected it to be kept") from exc


def committed_under(manifest_id: str, state: State) -> Commit | None:
    """The commit under an id; None if no manifest has that id, or if it is a dead letter.

    Raises:
        ManifestError: That id is revoked, or its manifest is not done yet.
    """
    holder = state.ledger.accepted(manifest_id)
    if holder is None:
        if redrive_on_record(state, manifest_id) is not None:
            raise _used(f"manifest {manifest_id} is on record as a redrive; expected it to be done first")
        if state.store.stat(state.layout.manifest(manifest_id)) is None:
            return None
        raise _used(f"manifest {manifest_id} waits; expected it to be done first")
    if holder.kind == "revoked":
        raise _used(f"the id {manifest_id} was revoked by its planner, and its files were planned again")
    try:
        outcome = state.ledger.outcome(holder.key)
    except ObjectNotFound as exc:
        raise _used(f"manifest {manifest_id} is in work; expected it to be done first") from exc
    return outcome if isinstance(outcome, Commit) else None


def _used(message: str) -> ManifestError:
    return ManifestError("id_already_used", message)
