"""Finds quarantined ranges of topics and streams that are gone, and puts on record who accepted that, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compactor.core.documents.accepted_losses import AcceptedLoss
from compactor.core.documents.records import Commit, FileStatus
from compactor.core.kafka.ports import OpenKafka
from compactor.core.kafka.ranges import KafkaRange, is_kafka
from compactor.core.kinesis.places import is_kinesis
from compactor.ledger.history.accepted_losses import AcceptedLosses
from compactor.ledger.state import State
from compactor.ops.redrive.ranges import parts_of
from compactor.ops.redrive.scan import Source, find_redrivable
from compactor.ops.redrive.selection import Scope


@dataclass(frozen=True, slots=True)
class LostRange:
    """A quarantined range of which nothing is left."""

    manifest_id: str
    uri: str
    offsets: int  # how many it has; 0 of a stream, whose sequence numbers tell no count
    detail: str  # why it was quarantined


@dataclass(frozen=True, slots=True)
class NotLost:
    """What is not accepted."""

    manifest_id: str
    uri: str  # the range; empty for a whole manifest
    why: str


@dataclass(slots=True)
class Losses:
    """What can be accepted, or was."""

    lost: list[LostRange] = field(default_factory=list)
    refused: list[NotLost] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """Accepts losses. Files are no matter of it: a file may come back, and is redriven then.

    Attributes:
        kafka: Tells what is left.
        by: Who accepts.
    """

    state: State
    kafka: OpenKafka
    by: str

    def find(self, manifest_ids: Sequence[str] = ()) -> Losses:
        """Find quarantined ranges that are not settled, of some manifests or of all. Writes nothing.

        Raises:
            StoreUnavailable: The brokers or the store fail for now.
        """
        scan = find_redrivable(self.state, Scope("files", tuple(manifest_ids)))
        found = Losses(refused=[NotLost(each.manifest_id, "", each.why) for each in scan.refused])
        for source in scan.sources:
            settled = scan.scope.settled.get(source.key.id, ())
            self._look(source, {each.uri for each in source.files if each.uri not in settled}, found)
        return found

    def accept(self, losses: Losses, why: str) -> None:
        """Put on record that these are accepted; what was accepted meanwhile stays as it is."""
        records = AcceptedLosses(self.state)
        for each in losses.lost:
            now = self.state.clock.now()
            records.accept(
                AcceptedLoss(manifest_id=each.manifest_id, uri=each.uri, why=why, by=self.by, accepted_at=now)
            )

    def _look(self, source: Source, uris: set[str], found: Losses) -> None:
        outcome = self.state.ledger.outcome(source.key)
        if not isinstance(outcome, Commit):
            return
        for report in outcome.files:
            if report.uri not in uris or report.status is not FileStatus.MISSING:
                continue
            if is_kinesis(report.uri):  # it was gone before it could be landed
                found.lost.append(LostRange(source.key.id, report.uri, 0, report.detail))
            if not is_kafka(report.uri):
                continue
            left = parts_of(report, self.kafka.open())
            if isinstance(left, str):
                offsets = KafkaRange.parse(report.uri).offsets
                found.lost.append(LostRange(source.key.id, report.uri, offsets, report.detail))
            else:
                why = "some of it is left; expected `compactor redrive files` to read that first"
                found.refused.append(NotLost(source.key.id, report.uri, why))
