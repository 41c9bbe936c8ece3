"""Reads a manifest that waits in the watched prefix."""

from collections.abc import Sequence

from compactor.core.manifest import Manifest
from compactor.core.manifest_parsing import parse_manifest
from compactor.core.ports import ObjectInfo
from compactor.ledger.state import State


def read_waiting_manifest(state: State, info: ObjectInfo, *, allowed_prefixes: Sequence[str]) -> Manifest:
    """Read a listed manifest as intake will.

    Raises:
        ManifestError: Intake will refuse it.
        ObjectNotFound: It was done since the listing.
    """
    state.rules.check_length(info.uri, info.size_bytes)
    return parse_manifest(
        state.store.read(info.uri),
        uri=info.uri,
        modified_at=info.modified_at,
        allowed_prefixes=allowed_prefixes,
        redriven_folder=state.layout.redriven_folder,
        rules=state.rules,
    )
