"""Checks that a plan gave the ranges of a manifest to it: no other manifest may name offsets of Kafka."""

from collections import defaultdict
from collections.abc import Sequence

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import ManifestError
from compactor.core.kafka.ranges import KafkaRange, Topic, is_kafka
from compactor.core.layout import root_id
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.ledger.state import State

_Place = tuple[Topic, str, int]  # a topic with its id, and a partition


def check_planned(state: State, manifest: Manifest, uri: str) -> None:
    """Check the ranges of a manifest: those of a redrive are in its root, all others are links of their chains.

    Raises:
        ManifestError: A range is not.
    """
    files = [file for file in manifest.files if is_kafka(file.uri)]
    root = root_id(manifest.manifest_id)
    if not files:
        return
    if root != manifest.manifest_id:
        accepted = state.ledger.accepted(root)
        of_root = accepted.manifest.files if accepted is not None and accepted.manifest is not None else ()
        named: dict[_Place, list[KafkaRange]] = defaultdict(list)
        for whole, place in (_parsed(each) for each in of_root if is_kafka(each.uri)):
            named[place].append(whole)
        for part, place in map(_parsed, files):
            if not any(whole.first <= part.first and part.end <= whole.end for whole in named[place]):
                raise _unplanned(uri, str(part), f"the ranges of manifest {root}")
        return
    by_topic: dict[tuple[Topic, str], list[ManifestFile]] = defaultdict(list)
    for file in files:
        by_topic[KafkaRange.parse(file.uri).topic, file.etag or ""].append(file)
    for (topic, topic_id), those in by_topic.items():
        _check_runs(Chains(state), topic, topic_id, manifest.manifest_id, those, uri)


def _check_runs(
    chains: Chains, topic: Topic, topic_id: str, manifest_id: str, files: Sequence[ManifestFile], uri: str
) -> None:
    for run, those in runs(files).items():
        link = chains.link_at(ChainPlace(topic, topic_id, run.partition), run.first)
        if link is None or (Run(run.partition, link.first, link.end), link.manifest_id) != (run, manifest_id):
            raise _unplanned(uri, those[0].uri, "ranges that `compactor plan` gave to this manifest")


def _parsed(file: ManifestFile) -> tuple[KafkaRange, _Place]:
    found = KafkaRange.parse(file.uri)
    return found, (found.topic, file.etag or "", found.partition)


def _unplanned(uri: str, named: str, expected: str) -> ManifestError:
    return ManifestError("not_planned", f"{uri}: names {named}; expected {expected}")
