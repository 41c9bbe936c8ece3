"""How far jobs are with streams: a small record of each, which the next one overwrites. Nothing depends on it."""

from contextlib import suppress
from dataclasses import dataclass

from compactor.core.documents.chains.kinesis_records import KinesisProgress
from compactor.core.documents.records import read_record
from compactor.core.errors import CompactorError, ObjectNotFound, RecordUnreadable
from compactor.core.kinesis.places import KinesisStream
from compactor.ledger.kinesis.shard_chains import ShardChains
from compactor.ledger.state import State


@dataclass(frozen=True, slots=True)
class StreamNotes:
    """Writes the records. What cannot be written is left out: the next plan writes it anew.

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
        with suppress(CompactorError):
            self._write(stream, self._failed(stream, progress, error) if error else progress)

    def failed(self, stream: KinesisStream, error: str) -> None:
        """Note that a plan failed, and why. What the last one that succeeded noted stays."""
        with suppress(CompactorError):
            known = read_stream_progress(self.state, stream) or KinesisProgress(run_id=self.run_id)
            self._write(stream, self._failed(stream, known, error))

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

    def _failed(self, stream: KinesisStream, progress: KinesisProgress, error: str) -> KinesisProgress:
        known = read_stream_progress(self.state, stream)
        since = known.failing_since if known is not None else None
        failures = (known.failures if known is not None else 0) + 1
        faults = {"failures": failures, "failing_since": since or self.state.clock.now(), "error": error}
        return progress.model_copy(update={**faults, "run_id": self.run_id})

    def _write(self, stream: KinesisStream, progress: KinesisProgress) -> None:
        self.state.store.put(_uri(self.state, stream), progress.model_dump_json().encode())


def read_stream_progress(state: State, stream: KinesisStream) -> KinesisProgress | None:
    """How far jobs are with a stream; None if none has said, or if that cannot be read."""
    uri = _uri(state, stream)
    with suppress(ObjectNotFound, RecordUnreadable):
        data = state.store.read(uri)
        return read_record(KinesisProgress.model_validate_json, data, uri, kind="KinesisProgress", expected="progress")
    return None


def _uri(state: State, stream: KinesisStream) -> str:
    return state.layout.stream_progress(stream.source, stream.name)
