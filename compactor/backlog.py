"""What waits to be done, counted manifest by manifest: for a run that is to work off all of it, and end."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from compactor.errors import ManifestError, ObjectNotFound
from compactor.layout import Layout, is_delivery
from compactor.ledger import Ledger
from compactor.lookahead import ahead
from compactor.manifest import MAX_MANIFEST_BYTES, parse_manifest
from compactor.ports import ObjectInfo, ObjectStore


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits.

    Attributes:
        manifests: In the watched prefix.
        begun: Begun and not done; most of them are in the watched prefix as well.
        size_bytes: Stored input of those in the watched prefix.
    """

    manifests: int
    begun: int
    size_bytes: int

    @property
    def is_empty(self) -> bool:
        return not self.manifests and not self.begun


def read_backlog(store: ObjectStore, layout: Layout, ledger: Ledger, *, allowed_prefixes: Collection[str]) -> Backlog:
    """Count what waits.

    Args:
        store: Where the manifests are.
        layout: The places.
        ledger: Knows what was begun.
        allowed_prefixes: Folders that input may be in.
    """
    waiting = (info for info in store.list(layout.manifests_folder) if is_delivery(info.uri))
    sizes = list(ahead(partial(_input_bytes, store, layout, tuple(allowed_prefixes)), waiting))
    return Backlog(len(sizes), sum(1 for _ in ledger.open_ids()), sum(sizes))


def _input_bytes(store: ObjectStore, layout: Layout, allowed_prefixes: tuple[str, ...], info: ObjectInfo) -> int:
    """What a manifest names; nothing for one that is about to be set aside, or was just done."""
    if info.size_bytes > MAX_MANIFEST_BYTES:
        return 0
    try:
        manifest = parse_manifest(
            store.read(info.uri),
            uri=info.uri,
            modified_at=info.modified_at,
            allowed_prefixes=allowed_prefixes,
            redriven_folder=layout.redriven_folder,
        )
    except (ObjectNotFound, ManifestError):
        return 0
    return sum(file.size_bytes or 0 for file in manifest.files)
