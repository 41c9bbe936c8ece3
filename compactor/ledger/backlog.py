"""What waits to be done, counted manifest by manifest: for a run that is to work off all of it, and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.errors import ManifestError, ObjectNotFound
from compactor.core.layout import Layout, is_delivery
from compactor.core.manifest import MAX_MANIFEST_BYTES, OUTSIDE, is_allowed
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo, ObjectStore
from compactor.core.records import Accepted
from compactor.ledger.ledger import Ledger
from compactor.ledger.waiting_manifests import read_waiting_manifest


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits.

    Attributes:
        manifests: In the watched prefix.
        begun: Begun and not done; most of them are in the watched prefix as well.
        size_bytes: Stored input of those in the watched prefix.
        of_others: Those in the watched prefix that are left to others; none of the above counts them.
    """

    manifests: int
    begun: int
    size_bytes: int
    of_others: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.manifests and not self.begun


def read_backlog(store: ObjectStore, layout: Layout, ledger: Ledger, *, allowed_prefixes: Sequence[str]) -> Backlog:
    """Count what waits.

    Args:
        store: Where the manifests are.
        layout: The places.
        ledger: Knows what was begun.
        allowed_prefixes: Folders that input may be in; what names files elsewhere is left to others.
    """
    waiting = (info for info in store.list(layout.manifests_folder) if is_delivery(info.uri))
    sizes = list(map_ordered(partial(_input_bytes, store, layout, allowed_prefixes), waiting))
    own = [size for size in sizes if size is not None]
    begun = [each for each in ledger.open_ids() if not _is_of_others(ledger.accepted(each), layout, allowed_prefixes)]
    return Backlog(len(own), len(begun), sum(own), of_others=len(sizes) - len(own))


def _is_of_others(record: Accepted | None, layout: Layout, allowed_prefixes: Sequence[str]) -> bool:
    """Whether a manifest was begun by somebody else, for files elsewhere."""
    if record is None or record.manifest is None:
        return False
    manifest_id, files = record.manifest_id, record.manifest.files
    return not all(is_allowed(file.uri, manifest_id, allowed_prefixes, layout.redriven_folder) for file in files)


def _input_bytes(store: ObjectStore, layout: Layout, allowed_prefixes: Sequence[str], info: ObjectInfo) -> int | None:
    """What a manifest names; nothing for one that is about to be set aside, or was just done; None for others' ones."""
    if info.size_bytes > MAX_MANIFEST_BYTES:
        return 0
    try:
        manifest = read_waiting_manifest(store, layout, info, allowed_prefixes=allowed_prefixes)
    except ObjectNotFound:
        return 0
    except ManifestError as exc:
        return None if exc.reason == OUTSIDE else 0
    return sum(file.size_bytes or 0 for file in manifest.files)
