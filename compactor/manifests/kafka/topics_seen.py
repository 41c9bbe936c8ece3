"""How far behind topics planning is: from what jobs noted, and from brokers where these can be asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from compactor.core.documents.chains.kafka_records import PartitionProgress, TopicProgress
from compactor.core.errors import CompactorError, StoreUnavailable, StuckError
from compactor.core.kafka.ports import KafkaLog, OpenKafka, Sample
from compactor.core.kafka.ranges import Topic
from compactor.core.text.formatting import count, shown_seconds
from compactor.ledger.chains.chain import heads
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.kafka.planned_work import PlannedWork
from compactor.ledger.kafka.topic_notes import expected_topic_progress, read_topic_progress
from compactor.ledger.state import State
from compactor.manifests.kafka.cutting import Uncut, not_asked
from compactor.telemetry.error_text import described

NAMED = 10
"""How many partitions a sentence names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSeen:
    """A topic that jobs plan, and how far behind it they are."""

    name: str  # the topic, as kafka://cluster/topic
    seen_at: datetime | None = None  # what the offsets are of; null if nothing is known of them
    not_asked: str = ""  # why brokers were not asked for these, so that a job's note is shown; empty if they were
    unseen_seconds: float = 0.0  # the age of that note; 0 if brokers were asked
    unseen_partitions: tuple[int, ...] = ()  # those without an answer, or with a damaged record: in no figure
    unseen_error: str = ""  # why that is so of the first of them; empty if all are known
    unplanned_offsets: int = 0  # offsets that are in no manifest
    undecided_offsets: int = 0  # those of them that cannot be planned yet: an open transaction is at or before them
    worst_partition: int | None = None  # the partition that has most of these; null if there are none
    worst_offsets: int = 0  # how many it has
    unplanned_seconds: float = 0.0  # for how long the oldest of these has waited, as far as is known
    planned_offsets: int = 0  # offsets in manifests that are not done
    planned_at: datetime | None = None  # when a job last planned the topic; null if none has
    idle_seconds: float = 0.0  # for how long no job has planned it, as far as is known
    failures: int = 0  # plans of jobs that have failed since, or could not finish what planners had left
    failing_seconds: float = 0.0  # for how long they have
    error: str = ""  # why the last of these failed; empty if none did
    late_seconds: float = 0.0  # how long a record may wait, or plans fail, before a person should look

    @property
    def is_behind(self) -> bool:
        """Whether a person should look. What came while nothing plans may not be known, so that counts, too."""
        return max(self.unplanned_seconds, self.failing_seconds, self.idle_seconds) > self.late_seconds

    @property
    def words(self) -> str:
        """What waits, and since when plans fail."""
        if self.seen_at is None:
            waits = "not planned yet"
        elif not self.unplanned_offsets:
            waits = f"all{' else' if self.unseen_partitions else ''} is in manifests"
        else:
            oldest = f", the oldest for {shown_seconds(self.unplanned_seconds)}" if self.unplanned_seconds else ""
            held = f", {self.undecided_offsets:,} behind an open transaction" if self.undecided_offsets else ""
            waits = f"{count(self.unplanned_offsets, 'offset')} in no manifest{oldest}{held}"
        if self.unseen_partitions:
            more = len(self.unseen_partitions) - NAMED
            named = ", ".join(map(str, self.unseen_partitions[:NAMED])) + (f" and {more:,} more" if more > 0 else "")
            waits += f"; not known of partition{'s' if len(self.unseen_partitions) > 1 else ''} {named}"
        waits += f", as of {shown_seconds(self.unseen_seconds)} ago" if self.unseen_seconds else ""
        if self.idle_seconds > max(self.late_seconds, self.unseen_seconds):
            waits += f"; no job has planned it for {shown_seconds(self.idle_seconds)}"
        done = f"; {self.planned_offsets:,} planned and not done" if self.planned_offsets else ""
        failed = f"{count(self.failures, 'plan')} in a row met an error, for {shown_seconds(self.failing_seconds)}"
        return waits + done + (f"; {failed}" if self.failures else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicWatch:
    """Sees the topics of one state.

    Attributes:
        topics: Those that its jobs plan.
        late_seconds: How long a record may wait, or plans fail, before a person should look.
        kafka: The brokers to ask; None to go by the notes of jobs alone.
        work: Counts what is planned and not done; None to go by the notes of jobs alone.
        may_note: Whether to note that a topic is to be planned if no job has noted anything of it.
    """

    state: State
    topics: Sequence[Topic]
    late_seconds: float
    kafka: OpenKafka | None = None
    work: PlannedWork | None = None
    may_note: bool = False

    def seen(self, now: datetime) -> tuple[TopicSeen, ...]:
        """How far behind each topic planning is. Brokers that do not answer hide nothing that was noted."""
        if not self.topics:
            return ()
        planned = self.work.offsets() if self.work is not None else None
        faults = dict[str, str]()  # by cluster: one that does not answer is asked once
        return tuple(self._seen(topic, now, planned, faults) for topic in self.topics)

    def _seen(
        self, topic: Topic, now: datetime, planned: dict[tuple[Topic, int], int] | None, faults: dict[str, str]
    ) -> TopicSeen:
        note = self._note(topic)
        found, unseen = list(_noted(note)), dict.fromkeys(note.unseen, note.error)
        not_asked = faults.get(topic.cluster, "brokers are not asked here")
        if self.kafka is not None and topic.cluster not in faults:
            try:
                asked = _asked(Chains(self.state), self.kafka.open(), topic, note)
                not_asked = "" if asked is not None else "brokers have no topic of this name"
                found, unseen = asked if asked is not None else (found, unseen)
            except CompactorError as exc:
                not_asked = faults[topic.cluster] = " ".join(str(exc).split())
        worst = max(found, key=lambda each: each.offsets, default=None)
        since = min((each.since for each in found if each.since is not None), default=now)
        failing, idle_since = note.failing_since or now, note.seen_at or note.expected_since or now
        of_topic = None if planned is None else sum(each for place, each in planned.items() if place[0] == topic)
        return TopicSeen(
            name=topic.uri,
            seen_at=note.seen_at if not_asked else now,
            not_asked=not_asked,
            unseen_seconds=max((now - note.seen_at).total_seconds(), 0.0) if not_asked and note.seen_at else 0.0,
            unseen_partitions=tuple(unseen),
            unseen_error=next(iter(unseen.values()), ""),
            unplanned_offsets=sum(each.offsets for each in found),
            undecided_offsets=sum(each.undecided for each in found),
            worst_partition=worst.partition if worst is not None and worst.offsets else None,
            worst_offsets=worst.offsets if worst is not None else 0,
            unplanned_seconds=max((now - since).total_seconds(), 0.0),
            planned_offsets=note.planned_offsets if of_topic is None else of_topic,
            planned_at=note.seen_at,
            idle_seconds=max((now - idle_since).total_seconds(), 0.0),
            failures=note.failures,
            failing_seconds=max((now - failing).total_seconds(), 0.0),
            error=note.error,
            late_seconds=self.late_seconds,
        )

    def _note(self, topic: Topic) -> TopicProgress:
        if self.may_note:
            return expected_topic_progress(self.state, topic)
        return read_topic_progress(self.state, topic) or TopicProgress(run_id="")


@dataclass(frozen=True, slots=True)
class _Unplanned:
    """How many offsets of a partition are in no manifest, and since when the first of them waits if that is known."""

    partition: int
    offsets: int
    undecided: int
    since: datetime | None


def _noted(note: TopicProgress) -> Iterator[_Unplanned]:
    for each in note.partitions:
        offsets = max(each.end - each.planned_to, 0) + each.undecided
        yield _Unplanned(each.partition, offsets, each.undecided, each.waits_since)


def _asked(
    chains: Chains, log: KafkaLog, topic: Topic, note: TopicProgress
) -> tuple[list[_Unplanned], dict[int, str]] | None:
    """What brokers have beyond the heads of the chains, by partition, and why that is not known of some of them.

    None if there is no topic of this name.
    """
    live = log.topic(topic)
    if live is None:
        return None
    places = [ChainPlace(topic, live.topic_id, each) for each in live.partitions]
    known_heads = dict(heads(chains.head, places))
    bounds = log.bounds(topic, live.partitions)
    uncut, unseen = list[Uncut](), dict[int, str]()
    for place, head in known_heads.items():
        now = bounds[place.partition]
        if isinstance(head, StuckError):
            unseen[place.partition] = described(head)
        elif isinstance(now, StoreUnavailable):
            unseen[place.partition] = described(not_asked(place.partition, now))
        else:
            uncut.append(Uncut(place.partition, now.earliest if head is None else head, now))
    noted = {each.partition: each for each in note.partitions if note.topic_id == live.topic_id}
    known = {each.partition: _known_since(each, noted.get(each.partition)) for each in uncut if each.has_new}
    samples = log.samples(topic, {each.partition: each.start for each in uncut if known.get(each.partition, 1) is None})
    found = [
        _Unplanned(
            each.partition,
            each.unplanned,
            each.bounds.undecided,
            (known[each.partition] or _told_since(samples.get(each.partition), each, noted, note))
            if each.has_new
            else _held_since(each, noted.get(each.partition)),
        )
        for each in uncut
    ]
    return found, unseen


def _known_since(uncut: Uncut, noted: PartitionProgress | None) -> datetime | None:
    """Since when the first unplanned record waits, if a job noted that very record."""
    return noted.waits_since if noted is not None and noted.planned_to == uncut.head else None


def _held_since(uncut: Uncut, noted: PartitionProgress | None) -> datetime | None:
    """Since when an open transaction holds all that is unplanned, if a job noted that."""
    return _known_since(uncut, noted) if uncut.is_held and noted is not None and noted.undecided else None


def _told_since(
    sample: Sample | None, uncut: Uncut, noted: Mapping[int, PartitionProgress], note: TopicProgress
) -> datetime | None:
    """Since when the first unplanned record waits, by its timestamp, as far as that can be true.

    Alarms go by what jobs noted, so that counts here, too: what was not there when a job last planned came later, and
    before anyone expected a job to plan the topic, nothing waited for it. A job that could not see the partition tells
    only since when its plans have failed.
    """
    told = sample.first_at if sample is not None else None
    if told is None:
        return None
    before = noted.get(uncut.partition)
    was_there = before is not None and before.end > uncut.head
    seen_at = note.failing_since if uncut.partition in note.unseen else note.seen_at or note.expected_since
    not_before = before.waits_since if before is not None and was_there else seen_at
    return told if not_before is None else max(told, not_before)
