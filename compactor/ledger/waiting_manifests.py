"""Reads a manifest that waits in the watched prefix."""

from collections.abc import Sequence

from compactor.core.layout import Layout
from compactor.core.manifest import Manifest, parse_manifest
from compactor.core.ports import ObjectInfo, ObjectStore


def read_waiting_manifest(
    store: ObjectStore, layout: Layout, info: ObjectInfo, *, allowed_prefixes: Sequence[str]
) -> Manifest:
    """Read a listed manifest as intake will. The caller checks its size first.

    Raises:
        ManifestError: Intake will refuse it.
        ObjectNotFound: It was done since the listing.
    """
    return parse_manifest(
        store.read(info.uri),
        uri=info.uri,
        modified_at=info.modified_at,
        allowed_prefixes=allowed_prefixes,
        redriven_folder=layout.redriven_folder,
    )
