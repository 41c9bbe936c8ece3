"""How far jobs are with streams: a note of each stream."""

from contextlib import suppress
from dataclasses import dataclass

from compactor.core.documents.chains.kinesis_records import KinesisProgress
from compactor.core.errors import CompactorError
from compactor.core.kinesis.places import KinesisStream
from compactor.ledger.chains.progress_notes import ProgressNote
from compactor.ledger.kinesis.shard_chains import ShardChains
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class StreamNotes:
    """Writes the notes.

    Attributes:
        state: Has the records.
        run_id: This run. All runs of a job write the same record.
    """

    state: State
    run_id: str

    def planned(self, stream: KinesisStream, stream_id: str, behind_seconds: float, gaps: int, error: str) -> None:
        """Note what came of a plan.

        Args:
            stream: The stream.
            stream_id: Its id.
            behind_seconds: For how long the oldest record that is not landed may have waited.
            gaps: In how many places plans of this run found that records may be lost.
            error: What kept the plan from landing more; empty if nothing did.
        """
        progress = KinesisProgress(
            run_id=self.run_id,
            seen_at=self.state.clock.now(),
            stream_id=stream_id,
            behind_seconds=behind_seconds,
            gaps=gaps,
        )
        note = _note(self.state, stream)
        if error:
            note.write_failure(self.run_id, error, progress)
        else:
            note.write(progress)

    def failed(self, stream: KinesisStream, error: str) -> None:
        """Note that a plan failed, and why. What the last one that succeeded noted stays."""
        _note(self.state, stream).write_failure(self.run_id, error)

    def noted(self, stream: KinesisStream) -> KinesisProgress | None:
        """What was noted last; None if nothing was, or if that cannot be read."""
        with suppress(CompactorError):
            return read_stream_progress(self.state, stream)
        return None

    def landings(self, stream: KinesisStream) -> frozenset[str]:
        """What objects are being landed for, as planners mark it: it changes while one is at work."""
        with suppress(CompactorError):
            chains = ShardChains(self.state)
            folders = [chains.landing_folder(stream, each) for each in chains.stream_ids(stream)]
            return frozenset(info.uri for folder in folders for info in self.state.store.list(folder))
        return frozenset()


def expected_stream_progress(state: State, stream: KinesisStream) -> KinesisProgress:
    """How far jobs are with a stream. If none has said, that one is to plan it is noted from now on."""
    return _note(state, stream).expected()


def read_stream_progress(state: State, stream: KinesisStream) -> KinesisProgress | None:
    """How far jobs are with a stream; None if none has said, or if that cannot be read."""
    return _note(state, stream).read()


def _note(state: State, stream: KinesisStream) -> ProgressNote[KinesisProgress]:
    return ProgressNote(state, KinesisProgress, state.layout.stream_progress(stream.source, stream.name))
