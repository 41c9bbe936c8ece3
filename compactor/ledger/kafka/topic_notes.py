"""How far jobs are with topics: a note of each topic."""

from dataclasses import dataclass

from compactor.core.documents.chains.kafka_records import PartitionProgress, TopicProgress
from compactor.core.kafka.ranges import Topic
from compactor.ledger.chains.progress_notes import ProgressNote
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class TopicNotes:
    """Writes the notes.

    Attributes:
        state: Has the records.
        run_id: This run. All runs of a job write the same record.
    """

    state: State
    run_id: str

    def planned(
        self,
        topic: Topic,
        topic_id: str,
        partitions: tuple[PartitionProgress, ...],
        unseen: tuple[int, ...],
        planned_offsets: int,
        error: str = "",
    ) -> None:
        """Note what came of a plan.

        Args:
            topic: The topic.
            topic_id: Its id.
            partitions: What of each partition is planned now.
            unseen: Those that the plan could not tell this of.
            planned_offsets: Offsets in manifests that are not done.
            error: What the plan could not finish; empty if there is nothing.
        """
        progress = TopicProgress(
            run_id=self.run_id,
            seen_at=self.state.clock.now(),
            topic_id=topic_id,
            partitions=partitions,
            unseen=unseen,
            planned_offsets=planned_offsets,
        )
        note = _note(self.state, topic)
        if error:
            note.write_failure(self.run_id, error, progress)
        else:
            note.write(progress)

    def failed(self, topic: Topic, error: str) -> None:
        """Note that a plan failed, and why. What the last one that succeeded noted stays."""
        _note(self.state, topic).write_failure(self.run_id, error)


def expected_topic_progress(state: State, topic: Topic) -> TopicProgress:
    """How far jobs are with a topic. If none has said, that one is to plan it is noted from now on."""
    return _note(state, topic).expected()


def read_topic_progress(state: State, topic: Topic) -> TopicProgress | None:
    """How far jobs are with a topic; None if none has said, or if that cannot be read."""
    return _note(state, topic).read()


def _note(state: State, topic: Topic) -> ProgressNote[TopicProgress]:
    return ProgressNote(state, TopicProgress, state.layout.topic_progress(topic.cluster, topic.name))
