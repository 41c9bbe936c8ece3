"""Verifies the chains of planned ranges: no gap, no offset twice, and a manifest that has the offsets of each link."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.manifest import Manifest
from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import Topic, is_kafka
from compactor.core.layout import ManifestKey
from compactor.core.map_ordered import map_ordered
from compactor.ledger.chains.by_manifest import ByManifest
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.state import State
from compactor.ops.verify.planned.taken_in import Links
from compactor.ops.verify.report import Discrepancy

_Runs = frozenset[tuple[str, Run]]  # each with the id of its topic


@dataclass(frozen=True, slots=True)
class _Linked:
    """What a link gives to its manifest."""

    cluster: str
    name: str
    topic_id: str
    partition: int
    first: int
    end: int

    @property
    def place(self) -> ChainPlace:
        return ChainPlace(Topic(self.cluster, self.name), self.topic_id, self.partition)

    @property
    def run(self) -> tuple[str, Run]:
        return self.topic_id, Run(self.partition, self.first, self.end)


def faults_of_chains(state: State) -> Iterator[Discrepancy]:
    """What is wrong with the chains. They are read from their beginnings, one record for each link.

    Then each manifest that links name is read once.

    Raises:
        RecordUnreadable: A record of a chain is damaged.
    """
    chains = Chains(state)
    with ByManifest(_Linked) as linked:
        for place in chains.places():
            yield from _faults(chains, place, linked)
        for found in map_ordered(partial(_faults_of_manifest, chains), linked.groups()):
            yield from found


def _faults(chains: Chains, place: ChainPlace, linked: ByManifest[_Linked]) -> Iterator[Discrepancy]:
    """What is wrong with the links of a chain by themselves; notes what they give to manifests."""
    try:
        expected = chains.origin(place).first
    except ObjectNotFound:
        yield Discrepancy("", str(place), "a record of where its chain begins", "none")
        return
    topic = place.topic
    for link in chains.links(place):
        if link.first != expected:  # guard: a gap in a chain is found
            yield Discrepancy(link.manifest_id, str(place), f"a range from {expected}", f"one from {link.first}")
        expected = link.end
        linked.add(link.manifest_id, topic.cluster, topic.name, place.topic_id, place.partition, link.first, link.end)


def _faults_of_manifest(chains: Chains, group: tuple[str, list[_Linked]]) -> list[Discrepancy]:
    manifest_id, linked = group
    links: Links[_Linked, _Runs] = Links(
        drafts_folder=lambda each: chains.drafts_folder(each.place.topic, each.topic_id),
        read=_runs_of,
        has=lambda found, each: each.run in found,
    )
    left, found = links.taken_in(chains.state, manifest_id, linked)
    faults = []
    for each in left:
        place, offsets = str(each.place), f"offsets {each.first} to {each.end - 1}"
        if found is None:
            faults.append(Discrepancy(manifest_id, place, f"manifest {manifest_id} with {offsets}", "no such manifest"))
        elif not links.has(found, each):
            faults.append(Discrepancy(manifest_id, place, f"{offsets} in its manifest", "other ones"))
    return faults


def _runs_of(_: State, manifests: Sequence[tuple[ManifestKey, Manifest]]) -> _Runs:
    files = [file for _, manifest in manifests for file in manifest.files if is_kafka(file.uri)]
    topic_ids = {file.uri: file.etag or "" for file in files}
    return frozenset((topic_ids[those[0].uri], run) for run, those in runs(files).items())
