"""Finds quarantined ranges of topics and streams that are gone, and puts on record who accepted that, and why."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from compactor.core.documents.records import Commit, FileReport
from compactor.core.kafka.ports import OpenKafka
from compactor.core.kafka.ranges import KafkaRange, is_kafka
from compactor.core.kinesis.places import is_kinesis
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.change_log import give_up
from compactor.ledger.state import State
from compactor.ops.redrive.ranges import NothingLeft, RangesLeft, Untold
from compactor.ops.redrive.scan import find_redrivable


@dataclass(frozen=True, slots=True)
class LostRange:
    """A quarantined range of which nothing is left."""

    manifest_id: str  # the manifest that quarantined it
    uri: str  # the range
    offsets: int  # how many it has; 0 of a stream, whose sequence numbers tell no count
    detail: str  # why it was quarantined
    unasked: bool = False  # whether no broker was asked what is left, because its cluster is gone for good


@dataclass(frozen=True, slots=True)
class NotLost:
    """What is not accepted."""

    manifest_id: str  # the manifest
    uri: str  # the range or file; empty for a whole manifest
    why: str  # why it is not


@dataclass(slots=True)
class Losses:
    """What can be accepted, or was. With `--dry-run` nothing is written."""

    lost: list[LostRange] = field(default_factory=list)  # ranges whose loss was accepted
    refused: list[NotLost] = field(default_factory=list)  # what is not accepted
    why: str = ""  # why the records are not expected any more
    dry_run: bool = False  # whether nothing was written


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

    def find(
        self, manifest_ids: Sequence[str] = (), *, date: str | None = None, gone_clusters: Collection[str] = ()
    ) -> Losses:
        """Find quarantined ranges that are not settled, of some manifests or of all. Writes nothing.

        A range whose brokers do not tell what is left of it is refused.

        Args:
            manifest_ids: The manifests; all if empty.
            date: Their date; None for any.
            gone_clusters: The names of clusters that are gone for good: of their ranges, no broker is asked.
        """
        scan = find_redrivable(self.state, Scope("files", tuple(manifest_ids), date=date))
        search = _Search(RangesLeft(self.kafka), gone_clusters)
        search.found.refused += [NotLost(each.manifest_id, "", each.why) for each in scan.refused]
        for source in scan.sources:
            outcome = self.state.ledger.outcome(source.key)
            if isinstance(outcome, Commit):
                search.add(outcome, {each.uri for each in source.files})
        return search.found

    def accept(self, losses: Losses, why: str) -> None:
        """Put on record that these are accepted; what was accepted meanwhile stays as it is."""
        for each in losses.lost:
            give_up(self.state, each.manifest_id, each.uri, "accepted", why, by=self.by, unasked=each.unasked)


@dataclass(frozen=True, slots=True)
class _Search:
    """What was found so far."""

    ranges: RangesLeft
    gone_clusters: Collection[str]
    found: Losses = field(default_factory=Losses)

    def add(self, commit: Commit, uris: Collection[str]) -> None:
        """Add those of some quarantined inputs of a commit that are ranges."""
        for report in commit.files:
            if report.uri in uris and is_kinesis(report.uri):  # it was gone before it could be landed
                self.found.lost.append(LostRange(commit.manifest_id, report.uri, 0, report.detail))
            elif report.uri in uris and is_kafka(report.uri):
                self._add_range(commit.manifest_id, report)

    def _add_range(self, manifest_id: str, report: FileReport) -> None:
        wanted = KafkaRange.parse(report.uri)
        unasked = wanted.topic.cluster in self.gone_clusters
        left = None if unasked else self.ranges.parts_of(report)
        if left is None or isinstance(left, NothingLeft):
            lost = LostRange(manifest_id, report.uri, wanted.offsets, report.detail, unasked)
            self.found.lost.append(lost)
        elif isinstance(left, Untold):
            self.found.refused.append(NotLost(manifest_id, report.uri, left.why))
        else:
            why = "some of it is left; expected `compactor redrive files` to read that first"
            self.found.refused.append(NotLost(manifest_id, report.uri, why))
