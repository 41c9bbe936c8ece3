"""Verifies the chains of landed shards: no gap in a chain, and each object in its manifest, with all of its lines.

What retention took before it was landed is in a manifest, too, whose reading quarantines it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from compactor.core.documents.records import Commit, FileStatus
from compactor.core.errors import ObjectNotFound
from compactor.core.kinesis.places import StreamGap
from compactor.ledger.kinesis.shard_chains import ShardChains, ShardPlace
from compactor.ledger.state import State
from compactor.ops.verify.report import Discrepancy

_MANIFESTS_HELD = 64

_Named = Mapping[tuple[str, str], int | None]  # URI and version of its files, with their lines once they are compacted
_NamedBy = Callable[[str], _Named | None]  # those of a manifest; None if it was not taken in


def faults_of_landed(state: State) -> Iterator[Discrepancy]:
    """What is wrong with the chains of shards. They are read from their beginnings, one record for each link.

    Raises:
        RecordUnreadable: A record of a chain is damaged.
    """
    chains = ShardChains(state)
    named_by = lru_cache(_MANIFESTS_HELD)(partial(_named, state))
    for place in chains.places():
        yield from _faults(chains, place, named_by)


def _faults(chains: ShardChains, place: ShardPlace, named_by: _NamedBy) -> Iterator[Discrepancy]:
    try:
        chains.origin(place)
    except ObjectNotFound:
        yield Discrepancy("", str(place), "a record of where its chain begins", "none")
        return
    expected, is_closed = 0, False
    for link in chains.chain(place).links():
        behind = f"behind sequence number {link.after}"
        if is_closed:
            yield Discrepancy(link.manifest_id, str(place), "no records behind its end", f"some {behind}")
        if link.first != expected:
            yield Discrepancy(
                link.manifest_id, str(place), f"records behind sequence number {expected}", f"some {behind}"
            )
        expected, is_closed = link.end, link.closes
        if link.gap:
            gap = StreamGap(place.stream, place.shard_id, link.first, int(link.begins or 0))
            yield from _faults_of_named(chains, place, _Landed(link.manifest_id, str(gap), place.stream_id), named_by)
        if link.uri:
            landed = _Landed(link.manifest_id, link.uri, link.etag, link.lines)
            yield from _faults_of_named(chains, place, landed, named_by)
    for loss in chains.losses(place).links():
        gap = StreamGap(place.stream, place.shard_id, int(loss.after))
        yield from _faults_of_named(chains, place, _Landed(loss.manifest_id, str(gap), place.stream_id), named_by)


@dataclass(frozen=True, slots=True)
class _Landed:
    """What a manifest has to name: a landed object, or where records may be lost, which has no lines."""

    manifest_id: str
    uri: str
    etag: str
    lines: int | None = None


def _faults_of_named(
    chains: ShardChains, place: ShardPlace, landed: _Landed, named_by: _NamedBy
) -> Iterator[Discrepancy]:
    manifest_id, uri, etag = landed.manifest_id, landed.uri, landed.etag
    found = named_by(manifest_id)
    if found is None:
        if _waits(chains, place, manifest_id):
            return
        found = _named(chains.state, manifest_id)  # a job may have taken it in meanwhile
    if found is None:
        yield Discrepancy(manifest_id, uri, f"manifest {manifest_id} with it", "no such manifest")
    elif (uri, etag) not in found:
        yield Discrepancy(manifest_id, uri, f"version {etag!r} in its manifest", "no such file")
    elif (lines := found[uri, etag]) not in {None, landed.lines}:
        yield Discrepancy(manifest_id, uri, f"{landed.lines} landed lines", f"{lines} lines")


def _named(state: State, manifest_id: str) -> _Named | None:
    accepted = state.ledger.accepted(manifest_id)
    if accepted is None or accepted.manifest is None:
        return None
    lines = dict[str, int]()
    try:
        outcome = state.ledger.outcome(accepted.key)
    except ObjectNotFound:  # not decided yet
        outcome = None
    if isinstance(outcome, Commit):
        lines = {file.uri: file.lines for file in outcome.files if file.status is FileStatus.COMPACTED}
    return {(file.uri, file.etag or ""): lines.get(file.uri) for file in accepted.manifest.files}


def _waits(chains: ShardChains, place: ShardPlace, manifest_id: str) -> bool:
    """Whether a manifest is written, or will be, because its draft is there."""
    state, draft = chains.state, f"{chains.drafts_folder(place.stream, place.stream_id)}{manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(manifest_id)))
