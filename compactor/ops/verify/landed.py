"""Verifies the chains of what was landed: no gap in a chain, and each object in its manifest, with all of its lines.

What retention took before it was landed is in a manifest, too, whose reading quarantines it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.records import Commit, FileStatus
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import ManifestKey
from compactor.core.logs.names import LogName
from compactor.core.map_ordered import map_ordered
from compactor.ledger.landing.by_manifest import ByManifest
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.state import State
from compactor.ops.verify.planned.taken_in import Links
from compactor.ops.verify.report import Discrepancy

_Named = Mapping[tuple[str, str], int | None]  # URI and version of its files, with their lines once they are compacted


@dataclass(frozen=True, slots=True)
class _Landed:
    """What a manifest has to name: a landed object, or where records may be lost, which has no lines."""

    scheme: str
    source: str
    name: str
    log_id: str
    uri: str
    etag: str
    lines: int | None = None

    @property
    def log(self) -> LogName:
        return LogName(self.scheme, self.source, self.name)


def faults_of_landed(state: State) -> Iterator[Discrepancy]:
    """What is wrong with the chains. They are read from their beginnings, one record for each link.

    Then each manifest that links name is read once, and its outcome.

    Raises:
        RecordUnreadable: A record of a chain is damaged.
    """
    chains = LogChains(state)
    with ByManifest(_Landed) as landed:
        for place in chains.places():
            yield from _faults(chains, place, landed)
        for found in map_ordered(partial(_faults_of_manifest, chains), landed.groups()):
            yield from found


def _faults(chains: LogChains, place: PartitionPlace, landed: ByManifest[_Landed]) -> Iterator[Discrepancy]:
    """What is wrong with the links of a partition by themselves; notes what they give to manifests."""
    try:
        expected, is_closed = int(chains.origin(place).after), False
    except ObjectNotFound:
        yield Discrepancy("", str(place), "a record of where its chain begins", "none")
        return
    of = (place.log.scheme, place.log.source, place.log.name, place.log_id)
    for link in chains.chain(place).links():
        behind = f"behind position {link.after}"
        if is_closed:
            yield Discrepancy(link.manifest_id, str(place), "no records behind its end", f"some {behind}")
        if link.first != expected:  # guard: a gap in a chain is found
            yield Discrepancy(link.manifest_id, str(place), f"records behind position {expected}", f"some {behind}")
        expected, is_closed = link.end, link.closes
        if link.gap:
            landed.add(link.manifest_id, *of, str(place.gap(link)), place.log_id)
        if link.uri:
            landed.add(link.manifest_id, *of, link.uri, link.etag, link.lines)


def _faults_of_manifest(chains: LogChains, group: tuple[str, list[_Landed]]) -> list[Discrepancy]:
    manifest_id, landed = group
    links: Links[_Landed, _Named] = Links(
        drafts_folder=lambda each: chains.drafts_folder(each.log, each.log_id),
        read=_named,
        has=lambda found, each: (each.uri, each.etag) in found,
    )
    left, found = links.taken_in(chains.state, manifest_id, landed)
    return [fault for each in left if (fault := _fault(manifest_id, each, found))]


def _fault(manifest_id: str, landed: _Landed, found: _Named | None) -> Discrepancy | None:
    uri, etag = landed.uri, landed.etag
    if found is None:
        return Discrepancy(manifest_id, uri, f"manifest {manifest_id} with it", "no such manifest")
    if (uri, etag) not in found:
        return Discrepancy(manifest_id, uri, f"version {etag!r} in its manifest", "no such file")
    # guard: a landed object has as many lines as were landed
    if (lines := found[uri, etag]) not in {None, landed.lines}:
        return Discrepancy(manifest_id, uri, f"{landed.lines} landed lines", f"{lines} lines")
    return None


def _named(state: State, manifests: Sequence[tuple[ManifestKey, Manifest]]) -> _Named:
    found = dict[tuple[str, str], int | None]()
    for key, manifest in manifests:
        lines = dict[str, int]()
        try:
            outcome = state.ledger.outcome(key)
        except ObjectNotFound:  # not decided yet
            outcome = None
        if isinstance(outcome, Commit):
            lines = {file.uri: file.lines for file in outcome.files if file.status is FileStatus.COMPACTED}
        found |= {(file.uri, file.etag or ""): lines.get(file.uri) for file in manifest.files}
    return found
