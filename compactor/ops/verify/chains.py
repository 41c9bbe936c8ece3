"""Verifies the chains of planned ranges: no gap, no offset twice, and a manifest that has the offsets of each link."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from compactor.core.documents.records import Accepted
from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import Topic, is_kafka
from compactor.core.map_ordered import map_ordered
from compactor.ledger.chains.by_manifest import ByManifest
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.state import State
from compactor.ops.verify.planned.taken_in import taken_in
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
        if link.first != expected:
            yield Discrepancy(link.manifest_id, str(place), f"a range from {expected}", f"one from {link.first}")
        expected = link.end
        linked.add(link.manifest_id, topic.cluster, topic.name, place.topic_id, place.partition, link.first, link.end)


def _faults_of_manifest(chains: Chains, group: tuple[str, list[_Linked]]) -> list[Discrepancy]:
    manifest_id, linked = group

    def drafts_folder(each: _Linked) -> str:
        return chains.drafts_folder(each.place.topic, each.topic_id)

    left, found = taken_in(chains.state, manifest_id, linked, drafts_folder=drafts_folder, read=_runs_of)
    faults = []
    for each in left:
        place, offsets = str(each.place), f"offsets {each.first} to {each.end - 1}"
        if found is None:
            faults.append(Discrepancy(manifest_id, place, f"manifest {manifest_id} with {offsets}", "no such manifest"))
        elif (each.topic_id, Run(each.partition, each.first, each.end)) not in found:
            faults.append(Discrepancy(manifest_id, place, f"{offsets} in its manifest", "other ones"))
    return faults


def _runs_of(_: State, accepted: Accepted) -> _Runs:
    files = [file for file in accepted.manifest.files if is_kafka(file.uri)] if accepted.manifest is not None else []
    topic_ids = {file.uri: file.etag or "" for file in files}
    return frozenset((topic_ids[those[0].uri], run) for run, those in runs(files).items())
