"""Reads a manifest that waits in the watched prefix."""

from collections.abc import Sequence

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.errors import AccessError, StuckError
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State


def read_waiting_manifest(state: State, info: ObjectInfo, *, allowed_prefixes: Sequence[str]) -> Manifest:
    """Read a listed manifest as intake will.

    Raises:
        ManifestError: Intake will refuse it.
        ObjectNotFound: It was done since the listing.
        StuckError: It may not be read.
    """
    state.rules.check_length(info.uri, info.size_bytes)
    try:
        data = state.store.read(info.uri)
    except AccessError as exc:
        raise StuckError(f"{exc}; expected to be allowed to read each manifest: it may name the same files") from exc
    return parse_manifest(
        data,
        uri=info.uri,
        modified_at=info.modified_at,
        allowed_prefixes=allowed_prefixes,
        redriven_folder=state.layout.redriven_folder,
        rules=state.rules,
    )
