"""How far jobs are with topics: a small record of each topic, which the next one overwrites. Nothing depends on it."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compactor.core.documents.chains.kafka_records import PartitionProgress, TopicProgress
from compactor.core.documents.records import read_record
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.core.kafka.ranges import Topic
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class TopicNotes:
    """Writes the records. What cannot be written is left out: the next plan writes it anew.

    Attributes:
        state: Has the records.
        run_id: This run. All runs of a job write the same record.
    """

    state: State
    run_id: str

    def planned(
        self, topic: Topic, topic_id: str, partitions: tuple[PartitionProgress, ...], planned_offsets: int
    ) -> None:
        """Note that a plan succeeded.

        Args:
            topic: The topic.
            topic_id: Its id.
            partitions: What of each partition is planned now.
            planned_offsets: Offsets in manifests that are not done.
        """
        progress = TopicProgress(
            run_id=self.run_id,
            seen_at=self.state.clock.now(),
            topic_id=topic_id,
            partitions=partitions,
            planned_offsets=planned_offsets,
        )
        self._write(topic, progress)

    def failed(self, topic: Topic, error: str) -> None:
        """Note that a plan failed, and why. What the last one that succeeded noted stays."""
        with suppress(CompactorError):
            now = self.state.clock.now()
            known = read_topic_progress(self.state, topic) or TopicProgress(run_id=self.run_id, expected_since=now)
            since = known.failing_since or now
            faults: dict[str, Any] = {"failures": known.failures + 1, "failing_since": since, "error": error}
            self._write(topic, known.model_copy(update={**faults, "run_id": self.run_id}))

    def _write(self, topic: Topic, progress: TopicProgress) -> None:
        uri = self.state.layout.topic_progress(topic.cluster, topic.name)
        with suppress(CompactorError):
            self.state.store.put(uri, progress.model_dump_json().encode())


def expected_topic_progress(state: State, topic: Topic) -> TopicProgress:
    """How far jobs are with a topic. If none has said, that one is to plan it is noted from now on."""
    found = read_topic_progress(state, topic)
    if found is not None:
        return found
    expected = TopicProgress(run_id="", expected_since=state.clock.now())
    uri = state.layout.topic_progress(topic.cluster, topic.name)
    state.store.create(uri, expected.model_dump_json().encode())
    return read_topic_progress(state, topic) or expected


def read_topic_progress(state: State, topic: Topic) -> TopicProgress | None:
    """How far jobs are with a topic; None if none has said, or if that cannot be read."""
    uri = state.layout.topic_progress(topic.cluster, topic.name)
    with suppress(ObjectNotFound, RecordUnreadable):
        data = state.store.read(uri)
        return read_record(TopicProgress.model_validate_json, data, uri, kind="TopicProgress", expected="progress")
    return None
