"""Reads a manifest that waits in the watched prefix, for whoever wants to know what it names."""

from collections.abc import Sequence

from compactor.core.layout import Layout
from compactor.core.manifest import Manifest, parse_manifest
from compactor.core.ports import ObjectInfo, ObjectStore


def read_waiting_manifest(
    store: ObjectStore, layout: Layout, info: ObjectInfo, *, allowed_prefixes: Sequence[str]
) -> Manifest:
    """Read one that was listed, as intake will. How long an object is worth reading is for the caller to say.

    Raises:
        ManifestError: It will be set aside.
        ObjectNotFound: It was done since the listing.
    """
    return parse_manifest(
        store.read(info.uri),
        uri=info.uri,
        modified_at=info.modified_at,
        allowed_prefixes=allowed_prefixes,
        redriven_folder=layout.redriven_folder,
    )
