"""Reads the backlog: manifests in the watched prefix with the bytes they name, begun ones, and pending parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.errors import ManifestError, ObjectNotFound, StuckError
from compactor.core.layout import id_from_name, is_delivery
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectInfo
from compactor.ledger.backlog import Backlog, read_begun
from compactor.ledger.state import State
from compactor.ledger.waiting_manifests import read_waiting_manifest
from compactor.ops.status.cache import StatusCache

MANIFESTS_READ = 200
"""How many waiting manifests are read for the bytes that they name. The bytes of the others are extrapolated."""

READ_MAX_BYTES = 4 * 1024 * 1024  # a longer manifest, of about 20,000 files, is not read; its bytes are extrapolated


@dataclass(frozen=True, slots=True)
class Waiting:
    """The backlog, manifest by manifest."""

    backlog: Backlog
    # The id as the name has it, the arrival and the input bytes of each manifest. Bytes that were not read are
    # extrapolated
    manifests: Sequence[tuple[str, datetime, float]]


def read_waiting(state: State, now: datetime, cache: StatusCache, *, allowed_prefixes: Sequence[str]) -> Waiting:
    """Read the backlog. At most `MANIFESTS_READ` manifests are read, evenly spread over all."""
    infos = [info for info in state.store.list(state.layout.manifests_folder) if is_delivery(info.uri)]
    weights = _weights(state, infos, cache, allowed_prefixes)
    per_byte = _bytes_per_manifest_byte(infos, weights)
    manifests = [
        (id_from_name(info.uri), info.modified_at, float(weights.get(_key(info), info.size_bytes * (per_byte or 0.0))))
        for info in infos
    ]
    begun = read_begun(state)
    oldest_begun, begun_seconds = _oldest(begun.left_to_jobs, now)
    oldest_undecided, undecided_seconds = _oldest(begun.undecided, now)
    parts = [info.modified_at for info in state.store.list(state.layout.pending_folder)]
    is_known = per_byte is not None or not infos
    backlog = Backlog(
        manifests=len(infos),
        manifests_read=len(weights),
        input_bytes=round(sum(length for _, _, length in manifests)) if is_known else None,
        oldest_seconds=_age(min((info.modified_at for info in infos), default=now), now),
        begun_manifests=len(begun.left_to_jobs),
        oldest_begun=oldest_begun,
        oldest_begun_seconds=begun_seconds,
        undecided_rebuilds=len(begun.undecided),
        oldest_undecided=oldest_undecided,
        oldest_undecided_seconds=undecided_seconds,
        pending_parts=len(parts),
        oldest_pending_seconds=_age(min(parts, default=now), now),
    )
    return Waiting(backlog, manifests)


def _weights(
    state: State, infos: Sequence[ObjectInfo], cache: StatusCache, allowed_prefixes: Sequence[str]
) -> dict[tuple[str, str], int]:
    """The bytes that a sample of manifests name, by the manifest's URI and ETag."""

    def weigh(info: ObjectInfo) -> int | None:
        known = cache.weights.get(_key(info))
        if known is not None:
            return known
        try:
            manifest = read_waiting_manifest(state, info, allowed_prefixes=allowed_prefixes)
        except ManifestError:
            return 0  # it will be a dead letter
        except (ObjectNotFound, StuckError):
            return None  # done since the listing, or unreadable
        return sum(file.weight_bytes for file in manifest.files)

    readable = [info for info in infos if info.size_bytes <= READ_MAX_BYTES]
    stride = max(1, -(-len(readable) // MANIFESTS_READ))
    sample = readable[::stride]
    found = zip(sample, map_ordered(weigh, sample), strict=True)
    cache.weights = {_key(info): weight for info, weight in found if weight is not None}
    return cache.weights


def _bytes_per_manifest_byte(infos: Sequence[ObjectInfo], weights: dict[tuple[str, str], int]) -> float | None:
    """The input bytes per byte of a manifest: a manifest is the longer, the more files it names."""
    length = sum(info.size_bytes for info in infos if _key(info) in weights)
    return sum(weights.values()) / length if length else None


def _key(info: ObjectInfo) -> tuple[str, str]:
    return info.uri, info.etag


def _oldest(begun: Mapping[str, datetime], now: datetime) -> tuple[str, float]:
    """The manifest that was begun first and the time since then; empty and 0 if there is none."""
    first = min(begun, key=lambda each: begun[each], default="")
    return first, _age(begun[first], now) if first else 0.0


def _age(moment: datetime, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds())
