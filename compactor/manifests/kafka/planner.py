"""Plans the ranges of a topic: what its partitions have and no manifest names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import CompactorError, SettingsError, StoreUnavailable, StuckError
from compactor.core.kafka.ports import Bounds, KafkaLog, LiveTopic
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.core.kafka.record_columns import RecordColumn
from compactor.core.kafka.value_lines import KafkaValues
from compactor.core.layout import is_within
from compactor.ledger.chains.chain import heads
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.state import State
from compactor.manifests.candidates import Candidate, Group
from compactor.manifests.kafka.cutting import RANGE_BYTES, Uncut, files, not_asked, ranges
from compactor.manifests.kafka.drafts import Drafts
from compactor.manifests.packing import Packing, new_manifest_id
from compactor.manifests.plan import Plan, PlannedManifest

IsDue = Callable[[str, Sequence[Uncut]], bool]
"""Whether what fills no manifest is to be planned, by the id of a topic and what its partitions have."""


def always(_topic_id: str, _partitions: Sequence[Uncut]) -> bool:
    """Everything is to be planned."""
    return True


@dataclass(slots=True)
class TopicPlan:
    """The result of planning a topic.

    Attributes:
        totals: The manifests; `held` counts ranges that another planner got.
        removed: What retention removed before it was planned: ranges that are quarantined when they are read.
        cut_off: Partitions that end before offsets that are in manifests: their log was cut off. By number, the end
            now, and where planning goes on once they have more.
        former_ids: Ids of topics of this name that are gone, of which ranges were planned.
        topic_id: The id of the topic that is there.
        partitions: Its partitions, with the first offset that is in no manifest after this plan.
        unseen: The partitions that could not be planned: without a leader, or with a damaged record.
        troubles: Why those could not be planned, and why manifests that planners left could not be finished. All else
            that it tells has happened.
    """

    totals: Plan = field(default_factory=Plan)
    removed: list[KafkaRange] = field(default_factory=list)
    cut_off: dict[int, tuple[int, int]] = field(default_factory=dict)
    former_ids: list[str] = field(default_factory=list)
    topic_id: str = ""
    partitions: list[Uncut] = field(default_factory=list)
    unseen: tuple[int, ...] = ()
    troubles: list[CompactorError] = field(default_factory=list)

    @property
    def needs_operator(self) -> bool:
        """Whether records are gone that were in no manifest, or that have to be expected twice."""
        return bool(self.removed or self.cut_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPlanner:
    """Plans topics. Safe beside other planners, and after any that died.

    Attributes:
        log: The brokers.
        allowed_prefixes: Where input may be.
        target_bytes: Returns how many bytes a manifest should name.
        record_columns: What of records rows have beside the values.
        values: Whether a value is one record, or lines.
    """

    state: State
    log: KafkaLog
    allowed_prefixes: Sequence[str]
    target_bytes: Callable[[], float]
    record_columns: Sequence[RecordColumn] = ()
    values: KafkaValues = "record"

    def plan(self, topic: Topic, *, max_manifests: int, dry_run: bool = False, is_due: IsDue = always) -> TopicPlan:
        """Write manifests for all offsets of a topic up to its last stable ones that are in none.

        Args:
            topic: Within the allowed prefixes.
            max_manifests: The most manifests to write.
            dry_run: Write nothing.
            is_due: Whether to plan what fills no manifest, too. What retention removed is planned in any case.

        Returns:
            What was done. Of trouble with one partition, or with what planners left, the plan tells; it keeps nothing
            else from being planned.

        Raises:
            SettingsError: The topic is not within the allowed prefixes, or there is none of its name.
            StoreUnavailable: The brokers or the store fail for now.
        """
        self._check(topic)
        live = self.log.topic(topic)
        chains = Chains(self.state)
        former = [each for each in chains.topic_ids(topic) if live is None or each != live.topic_id]
        plan = TopicPlan(former_ids=former, topic_id=live.topic_id if live is not None else "")
        if not dry_run:
            self._settle_left(chains, topic, plan)
        if live is None:
            raise SettingsError([f"plan: {topic} -> expected a topic that is there"])
        drafts = Drafts(chains, topic, live.topic_id)
        plan.partitions = self._partitions(chains, topic, live, plan, dry_run=dry_run)
        seen = {each.partition for each in plan.partitions}
        plan.unseen = tuple(each for each in live.partitions if each not in seen)
        plan.cut_off = {
            each.partition: (each.bounds.end, each.head) for each in plan.partitions if each.bounds.end < each.head
        }
        groups = self._groups(topic, live, plan)
        if not plan.removed and not is_due(live.topic_id, plan.partitions):
            groups = [each for each in groups if each.is_full]
        plan.totals.left_manifests = len(groups[max_manifests:])
        plan.totals.left_files = sum(len(each.files) for each in groups[max_manifests:])
        self._write(groups[:max_manifests], drafts, plan, dry_run=dry_run)
        return plan

    def _settle_left(self, chains: Chains, topic: Topic, plan: TopicPlan) -> None:
        """Write the manifests that planners left, and those that are gone too early, of former topics as well."""
        for topic_id in filter(None, (*plan.former_ids, plan.topic_id)):
            drafts = Drafts(chains, topic, topic_id)
            left, unreadable = drafts.left()
            plan.troubles += unreadable
            for draft in left:  # guard: the drafts of planners that died are settled
                try:
                    settled = drafts.settle(draft)
                except StuckError as exc:
                    plan.troubles.append(exc)
                    continue
                if settled.manifest is not None and not settled.has_begun:
                    _add(plan.totals, settled.manifest)

    def _check(self, topic: Topic) -> None:
        if not any(is_within(f"{topic}/", each) for each in self.allowed_prefixes):
            allowed = ", ".join(self.allowed_prefixes)
            raise SettingsError([f"plan: {topic} -> expected a topic within input.allowed_prefixes: {allowed}"])

    def _partitions(
        self, chains: Chains, topic: Topic, live: LiveTopic, plan: TopicPlan, *, dry_run: bool
    ) -> list[Uncut]:
        """What each partition has. One without a leader waits, or whose chain has a damaged record, and no other.

        A partition without a chain begins at its earliest offset: or at its first one, if others were planned before it
        was there. What retention removed of it is told then. One that only could not be asked then was there.
        """
        places = [ChainPlace(topic, live.topic_id, each) for each in live.partitions]
        known = dict(heads(chains.head, places))
        bounds = self._bounds(topic, live)  # after the heads, which are never beyond an end that follows
        there_at_first = None
        if None in known.values():
            there_at_first = chains.partitions_at_first(each for each, head in known.items() if head is not None)
        found = list[Uncut]()
        for place, head in known.items():
            now = bounds[place.partition]
            if isinstance(head, StuckError):
                plan.troubles.append(head)
            elif isinstance(now, StoreUnavailable):
                plan.troubles.append(not_asked(place.partition, now))
            elif head is not None:
                found.append(Uncut(place.partition, head, now))
            else:
                is_later = there_at_first is not None and place.partition >= there_at_first
                first = 0 if is_later else now.earliest
                begun = first if dry_run else chains.begin(place, first, len(live.partitions))
                found.append(Uncut(place.partition, begun, now))
        samples = self.log.samples(topic, {each.partition: each.start for each in found if each.has_new})
        return [replace(each, sample=samples.get(each.partition)) for each in found]

    def _bounds(self, topic: Topic, live: LiveTopic) -> dict[int, Bounds | StoreUnavailable]:
        """Where the partitions begin and end. Brokers are asked by name, so the topic may be another one by then."""
        bounds = self.log.bounds(topic, live.partitions)
        now = self.log.topic(topic)
        if now is None or now.topic_id != live.topic_id:  # guard: the id of a topic is compared after its bounds
            raise StoreUnavailable(
                f"{topic}: deleted or made again while it was planned; expected the id {live.topic_id}"
            )
        return bounds

    def _groups(self, topic: Topic, live: LiveTopic, plan: TopicPlan) -> list[Group]:
        """What is to be planned, cut into ranges, and these into manifests."""
        uncut = {each.partition: each for each in plan.partitions if each.has_new}
        if not uncut:
            return []
        now, target_bytes = self.state.clock.now(), self.target_bytes()
        cut = [each for one in uncut.values() for each in ranges(topic, one, min(RANGE_BYTES, max(target_bytes, 1)))]
        plan.removed = [each for each, _ in cut if each.first < uncut[each.partition].bounds.earliest]
        named = files(cut, live.topic_id, now, self.record_columns, self.values)
        date = f"{now:%Y-%m-%d}"
        packing = Packing(date, target_bytes, self.state.rules)
        return [*packing.add(Candidate.of_file(date, file) for file in named), *packing.end()]

    def _write(self, groups: Sequence[Group], drafts: Drafts, plan: TopicPlan, *, dry_run: bool) -> None:
        """Write the manifests one after the other: a link begins where the one before it ended."""
        lost: set[int] = set()
        for group in groups:
            left = [file for file in group.files if KafkaRange.parse(file.uri).partition not in lost]
            plan.totals.held += len(group.files) - len(left)
            if not left:
                continue
            draft = self._draft(left, "" if dry_run else None)
            if dry_run:
                _add(plan.totals, draft)
                continue
            drafts.write(draft)
            settled = drafts.settle(draft)
            lost |= {run.partition for run in settled.lost}
            written = settled.manifest.files if settled.manifest is not None else ()
            plan.totals.held += len(left) - len(written)
            if settled.manifest is not None:
                _add(plan.totals, settled.manifest)
                plan.partitions = _behind(plan.partitions, settled.manifest)

    def _draft(self, files: Sequence[ManifestFile], manifest_id: str | None) -> Manifest:
        now = self.state.clock.now()
        date = f"{now:%Y-%m-%d}"
        return Manifest(
            manifest_id=new_manifest_id(date) if manifest_id is None else manifest_id,
            date=date,
            created_at=now,
            files=tuple(files),
            listed_at=now,
        )


def _add(totals: Plan, manifest: Manifest) -> None:
    totals.manifests.append(PlannedManifest.of(manifest.date, manifest.files, manifest.manifest_id))


def _behind(partitions: Sequence[Uncut], manifest: Manifest) -> list[Uncut]:
    """The partitions with what is in no manifest any more behind a manifest."""
    ends = dict[int, int]()
    for each in map(KafkaRange.parse, (file.uri for file in manifest.files)):
        ends[each.partition] = max(ends.get(each.partition, 0), each.end)
    return [replace(each, head=ends.get(each.partition, each.head)) for each in partitions]
