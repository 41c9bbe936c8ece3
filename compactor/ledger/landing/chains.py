"""The chains of what was landed and lost: of each partition of each log id, and how far one was seen to be empty."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.landing import (
    EmptySeen,
    FirstLanding,
    LandedLink,
    LandedLoss,
    LogOrigin,
)
from compactor.core.errors import ObjectNotFound, RecordUnreadable
from compactor.core.logs.names import KAFKA, KINESIS, LogName
from compactor.ledger.landing.chain import Chain, children
from compactor.ledger.state import State

_DIGITS = 129  # of the largest position, by the documents of Kinesis
_LOSS_DIGITS = 9

_PARTITIONS, _DRAFTS, _LANDING = "partitions", "drafts", "landing"


@dataclass(frozen=True, slots=True, order=True)
class PartitionPlace:
    """One chain: a partition of one log id."""

    log: LogName
    log_id: str
    partition_id: str

    def __str__(self) -> str:
        return f"{self.log}/{self.partition_id} of id {self.log_id}"


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends.

    Attributes:
        after: The position behind which the next link begins; 0 at the beginning of the partition.
        anchor: A record that reading has to find first, as long as retention keeps it; 0 without one.
        whole_since: All records behind `after` came at this time or later; None if only the anchor tells.
        latest: The latest time that is known of the partition: of its last record, or when it had no other.
        gap: Whether records behind `after` may have been lost before `whole_since`, and no manifest names them.
        losses: How many losses are on record of which no next record was known.
        closed: Whether the partition ended here.
    """

    after: int
    anchor: int
    whole_since: datetime | None
    latest: datetime
    gap: bool = False
    losses: int = 0
    closed: bool = False

    @property
    def landed_to(self) -> datetime | None:
        """Records that came before this time are landed, or named as lost; None if that is not known."""
        if self.gap:
            return None
        return self.latest if self.after else self.whole_since


@dataclass(frozen=True, slots=True)
class LogChains:
    """Reads and writes the chains."""

    state: State

    def drafts_folder(self, log: LogName, log_id: str) -> str:
        """The folder of the drafts of manifests of a log."""
        return f"{self._id_folder(log, log_id)}{_DRAFTS}/"

    def drafts_folders(self) -> Iterator[tuple[str, str]]:
        """The folders of all drafts, each with its log."""
        for log in self._logs():
            yield from ((str(log), self.drafts_folder(log, each)) for each in self.log_ids(log))

    def landing_folder(self, log: LogName, log_id: str) -> str:
        """The folder of the marks of manifests whose objects are being landed, or were when a planner died."""
        return f"{self._id_folder(log, log_id)}{_LANDING}/"

    def chain(self, place: PartitionPlace) -> Chain[LandedLink]:
        """The links of a partition."""
        return Chain(self.state.store, self._folder(place), _DIGITS, _read_link)

    def losses(self, place: PartitionPlace) -> Chain[LandedLoss]:
        """What of a shard was lost while no next record was known."""
        return Chain(self.state.store, f"{self._folder(place)}lost/", _LOSS_DIGITS, _read_loss)

    def first_landing(self, log: LogName, log_id: str) -> FirstLanding | None:
        """When a log was first landed; None if it was not."""
        uri = self._first_landing(log, log_id)
        return FirstLanding.find(self.state.store, uri, "when a log was first landed")

    def begin_log(self, log: LogName, log_id: str, first: FirstLanding) -> None:
        """Note when a log was first landed, unless another planner did so before."""
        self.state.store.create(self._first_landing(log, log_id), first.to_json())

    def begin(self, place: PartitionPlace, origin: LogOrigin) -> None:
        """Begin a chain, unless another planner began it before."""
        self.state.store.create(self._origin(place), origin.to_json())

    def head(self, place: PartitionPlace) -> Head | None:
        """Where a chain ends; None if it was not begun."""
        last = self.chain(place).last()
        if last is None:
            return self._begun(place)
        if last.closes:
            return Head(last.end, last.end, None, last.arrived_at, closed=True)
        loss = self.losses(place).last()
        seen = self._seen(place, last.last)
        moments = [*([seen.at] if seen else []), *([loss.seen_at] if loss and loss.after == last.last else [])]
        return Head(
            after=last.end,
            anchor=last.end,
            whole_since=max(moments, default=None),
            latest=max([*moments, last.arrived_at]),
            losses=loss.end if loss else 0,
        )

    def origin(self, place: PartitionPlace) -> LogOrigin:
        """Where a chain begins.

        Raises:
            ObjectNotFound: It was not begun.
        """
        uri = self._origin(place)
        return LogOrigin.read(self.state.store.read(uri), uri, "the beginning of a chain")

    def note_seen(self, place: PartitionPlace, seen: EmptySeen) -> None:
        """Note that a partition has no record behind a position. An earlier note, written later, tells less."""
        self.state.store.put(self._seen_uri(place), seen.to_json())

    def places(self, log: LogName | None = None) -> Iterator[PartitionPlace]:
        """All chains that were begun, of one log or of all."""
        for each in self._logs() if log is None else [log]:
            for log_id in self.log_ids(each):
                yield from self.places_of(each, log_id)

    def places_of(self, log: LogName, log_id: str) -> Iterator[PartitionPlace]:
        """The chains that were begun of one log id."""
        shards = children(self.state.store, f"{self._id_folder(log, log_id)}{_PARTITIONS}/")
        return (PartitionPlace(log, log_id, partition_id) for partition_id in shards)

    def log_ids(self, log: LogName) -> list[str]:
        """The ids of all logs of a name of which something was landed."""
        return list(children(self.state.store, self._log_folder(log)))

    def _begun(self, place: PartitionPlace) -> Head | None:
        try:
            origin = self.origin(place)
        except ObjectNotFound:
            return None
        seen, loss = self._seen(place, origin.after), self.losses(place).last()
        moments = [*([seen.at] if seen else []), *([loss.seen_at] if loss else [])]
        since = max([*moments, origin.whole_since])
        # A shard that had records when its chain was begun must still have the first of them, until their loss is told.
        after = int(origin.after)
        return Head(
            after=after,
            anchor=int(origin.first or after),
            whole_since=None if origin.first and not moments else since,
            latest=since,
            gap=origin.gap and loss is None,
            losses=loss.end if loss else 0,
        )

    def _seen(self, place: PartitionPlace, after: str) -> EmptySeen | None:
        """The note of a partition, if it is about this position. One that cannot be read tells nothing."""
        uri = self._seen_uri(place)
        try:
            data = self.state.store.read(uri)
        except ObjectNotFound:
            return None
        try:
            found = EmptySeen.read(data, uri)
        except RecordUnreadable:  # without it a gap may be told of that there is not; the next note takes its place
            return None
        return found if found.after == after else None

    def _logs(self) -> Iterator[LogName]:
        store = self.state.store
        for scheme in (KAFKA, KINESIS):
            root = f"{self.state.layout.logs_folder}{scheme}/"
            for source in children(store, root):
                yield from (LogName(scheme, source, name) for name in children(store, f"{root}{source}/"))

    def _log_folder(self, log: LogName) -> str:
        return f"{self.state.layout.logs_folder}{log.scheme}/{log.path}/"

    def _id_folder(self, log: LogName, log_id: str) -> str:
        return f"{self._log_folder(log)}{log_id}/"

    def _folder(self, place: PartitionPlace) -> str:
        return f"{self._id_folder(place.log, place.log_id)}{_PARTITIONS}/{place.partition_id}/"

    def _first_landing(self, log: LogName, log_id: str) -> str:
        return f"{self._id_folder(log, log_id)}first-landing.json"

    def _origin(self, place: PartitionPlace) -> str:
        return f"{self._folder(place)}origin.json"

    def _seen_uri(self, place: PartitionPlace) -> str:
        return f"{self._folder(place)}seen.json"


def _read_loss(data: bytes, uri: str) -> LandedLoss:
    return LandedLoss.read(data, uri, "a loss of a shard")


def _read_link(data: bytes, uri: str) -> LandedLink:
    return LandedLink.read(data, uri, "a link of a chain")
