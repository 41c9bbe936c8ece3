"""Verifies the chains of planned ranges: no gap, no offset twice, and a manifest that has the offsets of each link."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import is_kafka
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.state import State
from compactor.ops.verify.report import Discrepancy

_MANIFESTS_HELD = 64

_Runs = frozenset[tuple[str, Run]]  # each with the id of its topic
_RunsOf = Callable[[str], _Runs | None]  # those of a manifest; None if it was not taken in


def faults_of_chains(state: State) -> Iterator[Discrepancy]:
    """What is wrong with the chains. They are read from their beginnings, one record for each link.

    Raises:
        RecordUnreadable: A record of a chain is damaged.
    """
    chains = Chains(state)
    runs_of = lru_cache(_MANIFESTS_HELD)(partial(_runs_of, state))
    for place in chains.places():
        yield from _faults(chains, place, runs_of)


def _faults(chains: Chains, place: ChainPlace, runs_of: _RunsOf) -> Iterator[Discrepancy]:
    try:
        expected = chains.origin(place).first
    except ObjectNotFound:
        yield Discrepancy("", str(place), "a record of where its chain begins", "none")
        return
    for link in chains.links(place):
        if link.first != expected:
            yield Discrepancy(link.manifest_id, str(place), f"a range from {expected}", f"one from {link.first}")
        expected = link.end
        found = runs_of(link.manifest_id)
        if found is None:
            if _waits(chains, place, link):
                continue
            found = _runs_of(chains.state, link.manifest_id)  # a job may have taken it in meanwhile
        if found is None:
            of = f"manifest {link.manifest_id} with offsets {link.first} to {link.end - 1}"
            yield Discrepancy(link.manifest_id, str(place), of, "no such manifest")
        elif (place.topic_id, Run(place.partition, link.first, link.end)) not in found:
            what = f"offsets {link.first} to {link.end - 1}"
            yield Discrepancy(link.manifest_id, str(place), f"{what} in its manifest", "other ones")


def _runs_of(state: State, manifest_id: str) -> _Runs | None:
    accepted = state.ledger.accepted(manifest_id)
    if accepted is None or accepted.manifest is None:
        return None
    files = [file for file in accepted.manifest.files if is_kafka(file.uri)]
    topic_ids = {file.uri: file.etag or "" for file in files}
    return frozenset((topic_ids[those[0].uri], run) for run, those in runs(files).items())


def _waits(chains: Chains, place: ChainPlace, link: KafkaLink) -> bool:
    """Whether the manifest of a link is written, or will be, because its draft is there."""
    state, draft = chains.state, f"{chains.drafts_folder(place.topic, place.topic_id)}{link.manifest_id}.json"
    return any(state.store.stat(uri) is not None for uri in (draft, state.layout.manifest(link.manifest_id)))
