"""Drafts of manifests: written before their links, so that any planner can finish what another one began.

A planner writes the draft, then creates the links of its runs, then writes the manifest of the runs whose links it got.
A link is there for good once it is there. So every planner that goes through these steps gets the same manifest, at any
time and any number of times: a planner that dies, or that is held up for hours, leaves nothing undecided.
"""

from dataclasses import dataclass
from functools import partial

from compactor.core.documents.kafka_records import KafkaLink
from compactor.core.documents.manifest import Manifest, version_keys
from compactor.core.documents.records import read_record
from compactor.core.errors import ObjectNotFound
from compactor.core.kafka.ranges import Topic
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a draft.

    Attributes:
        manifest: What was written; None if others have all of its runs.
        lost: The runs that others have.
    """

    manifest: Manifest | None
    lost: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Drafts:
    """Writes the drafts of one topic id, and makes manifests of them.

    Each run in a draft begins where the chain of its partition ended, or begins, when the draft was written.
    """

    chains: Chains
    topic: Topic
    topic_id: str

    def write(self, draft: Manifest) -> None:
        """Write a draft. From now on, others may settle it."""
        self.chains.state.store.create(self._uri(draft.manifest_id), draft.to_json())

    def settle(self, draft: Manifest) -> Settled:
        """Create the links of a draft and write its manifest, as far as that was not done."""
        state = self.chains.state
        won, lost = set[str](), list[Run]()
        for run, those in runs(draft.files).items():
            place = ChainPlace(self.topic, self.topic_id, run.partition)
            link = self.chains.link(place, KafkaLink(first=run.first, end=run.end, manifest_id=draft.manifest_id))
            if link.manifest_id == draft.manifest_id:
                won.update(file.uri for file in those)
            else:
                lost.append(run)
        files = tuple(file for file in draft.files if file.uri in won)
        # With the keys that are left out of a draft as it is read, or else its bytes would tell who settled it.
        manifest = draft.model_copy(update={"files": files, **version_keys(files)})
        if won and state.ledger.accepted(manifest.manifest_id) is None:
            state.store.create(state.layout.manifest(manifest.manifest_id), manifest.to_json())
        state.store.delete([self._uri(draft.manifest_id)])
        return Settled(manifest if won else None, tuple(lost))

    def settle_all(self) -> list[Manifest]:
        """Settle the drafts that planners left; returns their manifests."""
        settled = (self.settle(draft) for draft in self.left())
        return [each.manifest for each in settled if each.manifest is not None]

    def left(self) -> list[Manifest]:
        """The drafts that are there."""
        store, found = self.chains.state.store, list[Manifest]()
        for info in list(store.list(self.chains.drafts_folder(self.topic, self.topic_id))):
            try:
                data = store.read(info.uri)
            except ObjectNotFound:  # settled meanwhile
                continue
            read = partial(read_record, Manifest.model_validate_json, data, info.uri, kind="Manifest")
            found.append(read(expected="the draft of a manifest"))
        return found

    def _uri(self, manifest_id: str) -> str:
        return f"{self.chains.drafts_folder(self.topic, self.topic_id)}{manifest_id}.json"
