"""Verifies the chains of planned ranges: no gap, no offset twice, and a manifest that has the offsets of each link."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import Topic, is_kafka
from compactor.core.map_ordered import map_ordered
from compactor.ledger.chains.by_manifest import ByManifest
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.state import State
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
    found = _runs_of(chains.state, manifest_id)
    if found is None:
        topics = {(each.place.topic, each.topic_id) for each in linked}
        waiting = {topic for topic in topics if _waits(chains, manifest_id, *topic)}
        linked = [each for each in linked if (each.place.topic, each.topic_id) not in waiting]
        # A job may have taken it in meanwhile.
        found = _runs_of(chains.state, manifest_id) if linked else None
    faults = []
    for each in linked:
        place, offsets = str(each.place), f"offsets {each.first} to {each.end - 1}"
        if found is None:
            faults.append(Discrepancy(manifest_id, place, f"manifest {manifest_id} with {offsets}", "no such manifest"))
        elif (each.topic_id, Run(each.partition, each.first, each.end)) not in found:
            faults.append(Discrepancy(manifest_id, place, f"{offsets} in its manifest", "other ones"))
    return faults


def _runs_of(state: State, manifest_id: str) -> _Runs | None:
    """The runs of a manifest; None if it was not taken in."""
    accepted = state.ledger.accepted(manifest_id)
    if accepted is None or accepted.manifest is None:
        return None
    files = [file for file in accepted.manifest.files if is_kafka(file.uri)]
    topic_ids = {file.uri: file.etag or "" for file in files}
    return frozenset((topic_ids[those[0].uri], run) for run, those in runs(files).items())


def _waits(chains: Chains, manifest_id: str, topic: Topic, topic_id: str) -> bool:
    """Whether the manifest of a link is written, or will be, because its draft is there."""
    state, draft = chains.state, f"{chains.drafts_folder(topic, topic_id)}{manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(manifest_id)))
