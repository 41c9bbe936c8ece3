"""The manifests that wait, counted one by one: for a run that works off all of them and ends."""

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
    """The manifests that wait.

    Attributes:
        manifests: Manifests in the watched prefix.
        begun: Open manifests; most of them are in the watched prefix as well.
        size_bytes: Stored input bytes of the manifests in the watched prefix.
        of_others: Manifests in the watched prefix that are left to their own planner, and not counted above.
    """

    manifests: int
    begun: int
    size_bytes: int
    of_others: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.manifests and not self.begun


def read_backlog(store: ObjectStore, layout: Layout, ledger: Ledger, *, allowed_prefixes: Sequence[str]) -> Backlog:
    """Count the manifests that wait; those of files outside the allowed prefixes are left to their own planner."""
    waiting = (info for info in store.list(layout.manifests_folder) if is_delivery(info.uri))
    sizes = list(map_ordered(partial(_input_bytes, store, layout, allowed_prefixes), waiting))
    own = [size for size in sizes if size is not None]
    begun = [each for each in ledger.open_ids() if not _is_of_others(ledger.accepted(each), layout, allowed_prefixes)]
    return Backlog(len(own), len(begun), sum(own), of_others=len(sizes) - len(own))


def _is_of_others(record: Accepted | None, layout: Layout, allowed_prefixes: Sequence[str]) -> bool:
    """Whether an open manifest names files outside the allowed prefixes."""
    if record is None or record.manifest is None:
        return False
    manifest_id, files = record.manifest_id, record.manifest.files
    return not all(is_allowed(file.uri, manifest_id, allowed_prefixes, layout.redriven_folder) for file in files)


def _input_bytes(store: ObjectStore, layout: Layout, allowed_prefixes: Sequence[str], info: ObjectInfo) -> int | None:
    """The stored bytes that a manifest names; 0 if it will be refused or is done, None if it is not of this planner."""
    if info.size_bytes > MAX_MANIFEST_BYTES:
        return 0
    try:
        manifest = read_waiting_manifest(store, layout, info, allowed_prefixes=allowed_prefixes)
    except ObjectNotFound:
        return 0
    except ManifestError as exc:
        return None if exc.reason == OUTSIDE else 0
    return sum(file.size_bytes or 0 for file in manifest.files)
