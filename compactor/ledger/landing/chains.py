"""The chains of landed data, one per partition of each log id, and up to where a partition was found empty.

Links are only ever created, each named after the position where the previous one ends. So if two planners continue from
the same position, one gets the link. No link is ever changed or deleted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.landing import EmptySeen, FirstLanding, LandedLink, LogOrigin
from compactor.core.errors import ObjectNotFound
from compactor.core.layout import base_name
from compactor.core.logs.names import KAFKA, KINESIS, LogGap, LogName
from compactor.core.map_ordered import map_ordered
from compactor.core.ports import ObjectStore
from compactor.ledger.state import State

HINT_AT = 500
"""A new hint is kept once this many links follow the old one. A page of an S3 listing has about twice as many."""

_DIGITS = 129  # digits of the largest position, by the Kinesis documentation
_PARTITIONS = "partitions"
_BEGINNING, _LINK = "the beginning of a chain", "a link of a chain"


@dataclass(frozen=True, slots=True, order=True)
class PartitionPlace:
    """One chain: a partition of one log id."""

    log: LogName
    log_id: str
    partition_id: str

    def gap(self, link: LandedLink) -> LogGap:
        """The possibly lost records before a link of this partition."""
        return LogGap(self.log, self.partition_id, link.first, int(link.begins or 0))

    def __str__(self) -> str:
        return f"{self.log}/{self.partition_id} of id {self.log_id}"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain.

    Attributes:
        after: The position before the next link; 0 at the beginning of the partition.
        anchor: A record that a read must find first, as long as retention keeps it; 0 without one.
        whole_since: All records after `after` arrived at this time or later; None if only the anchor can show it.
        latest: The latest known time of the partition: of its last record, or when it had no further one.
        gap: Whether records after `after` may have been lost before `whole_since` without any manifest listing them.
        closed: Whether the partition ended here.
    """

    after: int
    anchor: int
    whole_since: datetime | None
    latest: datetime
    gap: bool = False
    closed: bool = False

    @property
    def landed_to(self) -> datetime | None:
        """Records that arrived before this time are landed, or reported lost; None if unknown."""
        if self.gap:
            return None
        return self.latest if self.after else self.whole_since

    @classmethod
    def behind(cls, link: LandedLink, seen_at: datetime | None = None) -> "Head":
        """The head after the last link; `seen_at` is when the partition was found to have no more records, if ever."""
        since = max(filter(None, (seen_at, link.arrived_at if link.is_idle_gap else None)), default=None)
        latest = max(link.arrived_at, since or link.arrived_at)
        return cls(link.end, 0 if link.is_idle_gap else link.end, since, latest, closed=link.closes)

    @classmethod
    def begun(cls, origin: LogOrigin, seen_at: datetime | None = None) -> "Head":
        """The head of a chain without links; `seen_at` is when the partition was found to have no record, if ever."""
        after, latest = int(origin.after), max(filter(None, (seen_at, origin.whole_since)))
        # If a shard had records when its chain was started, the first of them must still exist, until its loss is
        # reported.
        since = None if origin.first and seen_at is None else latest
        return cls(after, int(origin.first or after), since, latest, gap=origin.gap)


@dataclass(frozen=True, slots=True)
class Chain:
    """Reads and writes the links of one partition, in a folder with a `/` at its end."""

    store: ObjectStore
    folder: str

    def last(self) -> LandedLink | None:
        """The last link; None without any."""
        names = self._links_behind_hint()
        return self._read(names[-1]) if names else None

    def create(self, link: LandedLink) -> LandedLink:
        """Create a link, unless one begins at the same position; return the existing one."""
        uri = self._uri(link.first)
        # guard: a link of a chain is never replaced
        return link if self.store.create(uri, link.to_json()) else self._read(uri)

    def at(self, first: int) -> LandedLink | None:
        """The link that begins at a position; None if there is none."""
        return LandedLink.find(self.store, self._uri(first), _LINK)

    def links(self) -> Iterator[LandedLink]:
        """All links, in order."""
        return map_ordered(self._read, (info.uri for info in self.store.list(self._links_folder)))

    def link_with(self, position: int) -> LandedLink | None:
        """The link that covers a position; None if there is none."""
        last = ""
        for info in self.store.list(self._links_folder):
            if int(base_name(info.uri).removesuffix(".json")) > position:
                break
            last = info.uri
        found = self._read(last) if last else None
        return found if found is not None and position < found.end else None

    def _links_behind_hint(self) -> list[str]:
        """The links starting from the hint. A missing or wrong hint only costs a longer listing."""
        hint = self._hint()
        hinted = hint if hint and self.store.stat(hint) is not None else ""
        behind = [info.uri for info in self.store.list(self._links_folder, start_after=hinted or None)]
        if len(behind) >= HINT_AT:
            self.store.put(self._hint_uri, base_name(behind[-1]).encode())
        return [hinted, *behind] if hinted else behind

    def _hint(self) -> str:
        try:
            name = self.store.read(self._hint_uri).decode(errors="replace")
        except ObjectNotFound:
            return ""
        is_name = name.removesuffix(".json").isdecimal() and len(name) == _DIGITS + len(".json")
        return f"{self._links_folder}{name}" if is_name else ""

    @property
    def _hint_uri(self) -> str:
        return f"{self.folder}hint"

    @property
    def _links_folder(self) -> str:
        return f"{self.folder}links/"

    def _uri(self, first: int) -> str:
        return f"{self._links_folder}{first:0{_DIGITS}d}.json"

    def _read(self, uri: str) -> LandedLink:
        return LandedLink.read(self.store.read(uri), uri, _LINK)


@dataclass(frozen=True, slots=True)
class LogChains:
    """Reads and writes the chains."""

    state: State

    def drafts_folder(self, log: LogName, log_id: str) -> str:
        """The drafts folder for a log's manifests."""
        return f"{self._id_folder(log, log_id)}drafts/"

    def drafts_folders(self) -> Iterator[tuple[str, str]]:
        """All drafts folders, each with its log."""
        for log in self._logs():
            yield from ((str(log), self.drafts_folder(log, each)) for each in self.log_ids(log))

    def landing_folder(self, log: LogName, log_id: str) -> str:
        """The folder of the marks of manifests whose objects are being landed, or were when a planner died."""
        return f"{self._id_folder(log, log_id)}landing/"

    def chain(self, place: PartitionPlace) -> Chain:
        """The links of a partition."""
        return Chain(self.state.store, self._folder(place))

    def first_landing(self, log: LogName, log_id: str) -> FirstLanding | None:
        """When a log was first landed; None if it never was."""
        uri = self._first_landing(log, log_id)
        return FirstLanding.find(self.state.store, uri, "when a log was first landed")

    def begin_log(self, log: LogName, log_id: str, first: FirstLanding) -> None:
        """Record when a log was first landed, unless another planner already did."""
        self.state.store.create(self._first_landing(log, log_id), first.to_json())

    def begin(self, place: PartitionPlace, origin: LogOrigin) -> Head:
        """Start a chain, unless another planner already did; return its end."""
        self.state.store.create(self._origin(place), origin.to_json())
        return self.head(place) or Head.begun(origin)

    def head(self, place: PartitionPlace) -> Head | None:
        """The end of a chain; None if it was not started."""
        last = self.chain(place).last()
        if last is not None:
            return Head.behind(last, None if last.closes else self._seen(place, last.last))
        origin = LogOrigin.find(self.state.store, self._origin(place), _BEGINNING)
        return None if origin is None else Head.begun(origin, self._seen(place, origin.after))

    def origin(self, place: PartitionPlace) -> LogOrigin:
        """The beginning of a chain.

        Raises:
            ObjectNotFound: It was not started.
        """
        uri = self._origin(place)
        return LogOrigin.read(self.state.store.read(uri), uri, _BEGINNING)

    def note_seen(self, place: PartitionPlace, seen: EmptySeen) -> None:
        """Record that a partition has no record after a position. A late write of an older note only says less."""
        self.state.store.put(self._seen_uri(place), seen.to_json())

    def places(self, log: LogName | None = None) -> Iterator[PartitionPlace]:
        """All started chains, of one log or of all."""
        for each in self._logs() if log is None else [log]:
            for log_id in self.log_ids(each):
                partitions = _children(self.state.store, f"{self._id_folder(each, log_id)}{_PARTITIONS}/")
                yield from (PartitionPlace(each, log_id, partition_id) for partition_id in partitions)

    def log_ids(self, log: LogName) -> list[str]:
        """The ids of all logs with a name that were landed at least partly."""
        return list(_children(self.state.store, self._log_folder(log)))

    def _seen(self, place: PartitionPlace, after: str) -> datetime | None:
        """When a partition was found to have no record after a position. An unreadable note counts as missing."""
        # Without it, a gap may be reported that does not exist.
        found = EmptySeen.find_readable(self.state.store, self._seen_uri(place))
        return found.at if found is not None and found.after == after else None

    def _logs(self) -> Iterator[LogName]:
        store = self.state.store
        for scheme in (KAFKA, KINESIS):
            root = f"{self.state.layout.logs_folder}{scheme}/"
            for source in _children(store, root):
                yield from (LogName(scheme, source, name) for name in _children(store, f"{root}{source}/"))

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


def _children(store: ObjectStore, folder: str) -> Iterator[str]:
    """The names directly below a folder, without listing the content of each."""
    after: str | None = None
    while (first := next(iter(store.list(folder, start_after=after)), None)) is not None:
        name = first.uri.removeprefix(folder).partition("/")[0]
        yield name
        after = f"{folder}{name}/~"  # sorts after all characters of names below
