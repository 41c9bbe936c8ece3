"""Checks that a plan, or a redrive, gave a manifest what it names of topics and streams."""

from pydantic import ValidationError

from compactor.core.documents.manifest import Manifest
from compactor.core.errors import ManifestError
from compactor.core.layout import digest, number_of_redrive, root_id
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.planned.given import check_given, names_planned
from compactor.ledger.state import State


def check_planned(state: State, manifest: Manifest, data: bytes, uri: str) -> None:
    """Check the ranges, the gaps and the copies of input in a manifest.

    A planner binds the id of a manifest before it writes it. Of one that is not bound, links have to give all of them
    to it, or to its root. A redrive has to be on record, just as the manifest has it.

    Args:
        state: Has the chains and the records of redrives.
        manifest: The manifest.
        data: Its bytes.
        uri: Where it is.

    Raises:
        ManifestError: It may not name them.
    """
    if not names_planned(state, manifest):
        return
    root = root_id(manifest.manifest_id)
    bound = state.ledger.accepted(manifest.manifest_id)
    if bound is not None and bound.kind == "manifest":
        if root == manifest.manifest_id and bound.digest != digest(data) and uri == bound.source_uri:
            raise ManifestError(
                "not_planned",
                f"{uri}: is not as it was planned; expected it unchanged. Unless a job had begun with the one that was "
                f"planned, `compactor plan` writes that again",
            )
        return
    if root != manifest.manifest_id and not _holds(redrive_on_record(state, manifest.manifest_id), data):
        raise ManifestError(
            "not_planned", f"{uri}: is not on record as a redrive of {root}; expected a manifest of `compactor redrive`"
        )
    check_given(state, manifest, uri)


def redrive_on_record(state: State, manifest_id: str) -> Manifest | None:
    """The manifest of a redrive that is on record; None if no redrive on record has this id."""
    root = root_id(manifest_id)
    accepted = state.ledger.accepted(root) if root != manifest_id else None
    if accepted is None:
        return None
    redrive = RedriveLog(state=state).at(accepted.key, number_of_redrive(manifest_id, root))
    return redrive.manifest if redrive is not None and redrive.manifest.manifest_id == manifest_id else None


def _holds(recorded: Manifest | None, data: bytes) -> bool:
    try:
        # guard: a redrive has what its record has
        return recorded is not None and Manifest.model_validate_json(data) == recorded
    except ValidationError:
        return False
