"""Drafts of manifests of ranges. Each run of ranges in one needs a link; `compactor.manifests.linked` settles them."""

from collections.abc import Sequence
from dataclasses import dataclass

from compactor.core.documents.chains.kafka_records import KafkaLink
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import RecordUnreadable
from compactor.core.kafka.ranges import Topic
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.runs import Run, runs
from compactor.manifests.linked import Wanted, drafts_left, settle


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a draft.

    Attributes:
        manifest: What was written; None if others have all of its runs.
        lost: The runs that others have.
        has_begun: Whether a job has begun with the manifest.
    """

    manifest: Manifest | None
    lost: tuple[Run, ...]
    has_begun: bool


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
        """Create the links of a draft and write its manifest, as far as that was not done.

        The draft stays until a job has begun with the manifest.
        """
        state, found = self.chains.state, runs(draft.files)
        wanted = [self._wanted(run, those, draft.manifest_id) for run, those in found.items()]
        outcome = settle(state, draft, wanted)
        if outcome.is_over:  # guard: a draft stays until a job has begun with its manifest
            state.store.delete([self._uri(draft.manifest_id)])
        lost = tuple(run for run, each in zip(found, wanted, strict=True) if each in outcome.lost)
        return Settled(outcome.manifest, lost, outcome.has_begun)

    def _wanted(self, run: Run, files: Sequence[ManifestFile], manifest_id: str) -> Wanted[KafkaLink]:
        chain = self.chains.chain(ChainPlace(self.topic, self.topic_id, run.partition))
        return Wanted(chain, KafkaLink(first=run.first, end=run.end, manifest_id=manifest_id), files)

    def left(self) -> tuple[list[Manifest], list[RecordUnreadable]]:
        """The drafts that are to be settled, and why some cannot be read; see `drafts_left`."""
        return drafts_left(self.chains.state, self.chains.drafts_folder(self.topic, self.topic_id), Manifest)

    def _uri(self, manifest_id: str) -> str:
        return f"{self.chains.drafts_folder(self.topic, self.topic_id)}{manifest_id}.json"
