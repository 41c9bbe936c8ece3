"""Ranges of topics: each offset in one manifest, whatever becomes of planners, partitions and topics."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.adapters.memory.store import ManualClock, MemoryStore
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.errors import SettingsError, StoreUnavailable
from compactor.core.kafka.ports import Bounds
from compactor.core.kafka.ranges import KafkaRange, Topic
from compactor.core.layout import Layout
from compactor.ledger.chains import chain as chain_module
from compactor.ledger.kafka.chains import ChainPlace, Chains
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.manifests.kafka.planner import KafkaPlanner, TopicPlan
from compactor.manifests.linked import drafts_left
from tests.support.memory_kafka import MemoryKafka, MemoryPartition

LAYOUT = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s")
TOPIC = Topic("main", "events")
VALUE = b'{"a": 1}'  # 8 bytes


class DiedError(BaseException):
    """The planner died: no handler of errors gets to run."""


@dataclass
class Meddling:
    """A store that calls a function before each change; all else is that of another store."""

    store: MemoryStore
    before: Callable[[], None]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in {"create", "put", "delete"}:
            return found

        def changing(*arguments: Any) -> Any:
            self.before()
            return found(*arguments)

        return changing


@dataclass
class Scene:
    """A topic, and what planners have written for it."""

    log: MemoryKafka = field(default_factory=MemoryKafka)
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: ManualClock = field(default_factory=ManualClock)
    target_bytes: float = 80.0

    def planner(self, store: Any = None) -> KafkaPlanner:
        used = store or self.store
        state = State(store=used, layout=LAYOUT, ledger=Ledger(used, LAYOUT, self.clock, "run"), clock=self.clock)
        return KafkaPlanner(
            state=state, log=self.log, allowed_prefixes=["kafka://main"], target_bytes=lambda: self.target_bytes
        )

    def plan(self, **options: Any) -> TopicPlan:
        return self.planner().plan(TOPIC, **{"max_manifests": 1000, **options})

    def manifests(self) -> Iterator[Manifest]:
        """All that were written, as intake reads them."""
        for info in self.store.list(LAYOUT.manifests_folder):
            yield parse_manifest(
                self.store.read(info.uri), uri=info.uri, modified_at=info.modified_at, allowed_prefixes=["kafka://main"]
            )

    def ranges(self, topic_id: str = "one") -> list[KafkaRange]:
        """The ranges of a topic id in all manifests, in order."""
        files = (file for manifest in self.manifests() for file in manifest.files)
        return sorted(KafkaRange.parse(file.uri) for file in files if file.etag == topic_id)

    def is_exact(self, ends: list[int], topic_id: str = "one") -> bool:
        """Whether each offset below these ends is in one manifest."""
        found = self.ranges(topic_id)
        by_partition = [[each for each in found if each.partition == number] for number in range(len(ends))]
        for those, end in zip(by_partition, ends, strict=True):
            firsts, lasts = [each.first for each in those], [each.end for each in those]
            if [*firsts, end] != [0, *lasts]:
                return False
        state = self.planner().state
        return drafts_left(state, Chains(state).drafts_folder(TOPIC, topic_id), Manifest) == ([], [])


def scene(*records: int) -> tuple[Scene, list[MemoryPartition]]:
    """A topic of one partition for each number of records."""
    made = Scene()
    partitions = made.log.create(TOPIC, "one", len(records))
    for partition, number in zip(partitions, records, strict=True):
        partition.append(*[VALUE] * number)
    return made, partitions


def test_each_plan_goes_on_where_the_last_one_ended() -> None:
    """Also for a partition that came later, and one without anything new."""
    made, partitions = scene(25, 0)
    assert len(made.plan().totals.manifests) >= 2
    assert made.is_exact([25, 0])
    assert made.plan().totals.manifests == []
    partitions[1].append(VALUE, None)
    partitions[0].skip(3)
    partitions.append(MemoryPartition())
    partitions[2].append(*[VALUE] * 4)
    assert [each.files for each in made.plan().totals.manifests] != []
    assert made.is_exact([28, 2, 4])


def test_a_manifest_of_ranges() -> None:
    """Each range has its topic id and a length."""
    made, _ = scene(3)
    made.plan()
    [manifest] = made.manifests()
    [file] = manifest.files
    assert (file.uri, file.etag, file.size_bytes) == (f"{TOPIC}/0?from=0&to=3", "one", 24)
    assert file.dated_by == "arrival"


def test_a_dry_run_writes_nothing() -> None:
    """It shows what a plan would write."""
    made, _ = scene(25)
    assert sum(each.files for each in made.plan(dry_run=True).totals.manifests) >= 2
    assert not list(made.store.list("s3://lake/"))


def test_at_most_so_many_manifests() -> None:
    """The others are left for the next plan."""
    made, _ = scene(45)
    plan = made.plan(max_manifests=1)
    assert (len(plan.totals.manifests), plan.totals.left_manifests) == (1, 4)
    made.plan()
    assert made.is_exact([45])


def test_removed_records_are_a_range_of_their_own() -> None:
    """So exactly they are quarantined."""
    made, partitions = scene(10)
    made.plan()
    partitions[0].append(*[VALUE] * 10)
    partitions[0].remove_before(15)
    plan = made.plan()
    assert plan.removed == [KafkaRange(TOPIC, 0, 10, 15)]
    assert plan.needs_operator
    assert KafkaRange(TOPIC, 0, 10, 15) in made.ranges()
    assert made.is_exact([20])


def test_a_topic_made_again_has_a_chain_of_its_own() -> None:
    """Its offsets begin anew, and none is taken for one of the former topic."""
    made, _ = scene(10)
    made.plan()
    made.log.create(TOPIC, "two")[0].append(*[VALUE] * 5)
    assert made.plan().former_ids == ["one"]
    assert made.is_exact([10])
    assert made.is_exact([5], "two")


def test_a_topic_that_is_made_again_meanwhile() -> None:
    """Bounds are asked for by name: those of the new topic never pass for those of the former one."""
    made, [partition] = scene(2)
    made.plan()
    partition.append(VALUE)

    class MadeAgain(MemoryKafka):
        def bounds(self, topic: Topic, partitions: Sequence[int]) -> dict[int, Bounds]:
            self.create(topic, "two")[0].append(*[VALUE] * 5)
            return super().bounds(topic, partitions)

    made.log = MadeAgain(made.log.topics)
    with pytest.raises(StoreUnavailable, match="made again while it was planned; expected the id one"):
        made.plan()
    made.log = MemoryKafka(made.log.topics)
    made.plan()
    assert made.is_exact([2])
    assert made.is_exact([5], "two")


def test_a_log_that_was_cut_off_is_told() -> None:
    """Offsets that were planned are not planned again."""
    made, partitions = scene(10)
    made.plan()
    partitions[0].end = 4
    plan = made.plan()
    assert (plan.cut_off, plan.totals.manifests) == ({0: (4, 10)}, [])
    assert plan.needs_operator


@pytest.mark.parametrize(
    ("topic", "expected"), [(Topic("other", "events"), "within"), (Topic("main", "none"), "that is there")]
)
def test_what_cannot_be_planned(topic: Topic, expected: str) -> None:
    """A topic elsewhere, and one that is not there."""
    made, _ = scene(1)
    with pytest.raises(SettingsError, match=expected):
        made.planner().plan(topic, max_manifests=1)


def test_a_chain_begins_once() -> None:
    """Also if retention removes records while two planners begin it."""
    made, partitions = scene(10)

    def overtake() -> None:
        if partitions[0].earliest == 0:
            partitions[0].remove_before(3)
            made.plan()

    made.planner(Meddling(made.store, overtake)).plan(TOPIC, max_manifests=1000)
    assert made.ranges() == [KafkaRange(TOPIC, 0, 3, 10)]


def changes_of_a_plan() -> int:
    """How often a plan of the scene below changes the store."""
    made, _ = scene(25, 25)
    count = 0

    def counted() -> None:
        nonlocal count
        count += 1

    made.planner(Meddling(made.store, counted)).plan(TOPIC, max_manifests=1000)
    return count


CHANGES = changes_of_a_plan()


@pytest.mark.parametrize("at", range(CHANGES))
def test_a_planner_that_dies_anywhere(at: int) -> None:
    """The next one finishes what it began."""
    made, partitions = scene(25, 25)
    left = at

    def die() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise DiedError

    with suppress(DiedError):
        made.planner(Meddling(made.store, die)).plan(TOPIC, max_manifests=1000)
    partitions[1].append(*[VALUE] * 7)
    made.plan()
    assert made.is_exact([25, 32])


@pytest.mark.parametrize("at", range(CHANGES))
def test_a_planner_that_is_held_up_anywhere(at: int) -> None:
    """Others plan meanwhile, more than there was, and it goes on as if nothing had happened."""
    made, partitions = scene(25, 25)
    left = at

    def hold() -> None:
        nonlocal left
        left -= 1
        if left == -1:
            partitions[0].append(*[VALUE] * 9)
            made.target_bytes = 160.0
            made.plan()

    made.planner(Meddling(made.store, hold)).plan(TOPIC, max_manifests=1000)
    made.plan()
    assert made.is_exact([34, 25])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 30)), max_size=6))
def test_any_planners_between_each_other(steps: list[tuple[int, int, int]]) -> None:
    """Records come, and at some change of one planner another one plans, at any depth."""
    made, partitions = scene(5, 5, 5)
    pending = list(steps)

    def meddle() -> None:
        if not pending:
            return
        partition, records, wait = pending[-1]
        if wait:
            pending[-1] = partition, records, wait - 1
            return
        pending.pop()
        partitions[partition].append(*[VALUE] * records)
        made.planner(Meddling(made.store, meddle)).plan(TOPIC, max_manifests=1000)

    made.planner(Meddling(made.store, meddle)).plan(TOPIC, max_manifests=1000)
    made.plan()
    assert made.is_exact([each.end for each in partitions])


def test_a_draft_has_one_manifest() -> None:
    """Byte for byte, from any planner: a job that gets it twice has to take both for the same."""
    found = set[bytes]()
    for at in (2, changes_of_a_plan()):  # with a draft that another planner reads, and without
        made, _ = scene(10)
        written = _before(made, at)
        found.add(written)
    assert len(found) == 1


def _before(made: Scene, at: int) -> bytes:
    """The manifest of a plan that dies before a change, and of the plan that follows; its id and times left out."""
    left = at

    def die() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise DiedError

    with suppress(DiedError):
        made.planner(Meddling(made.store, die)).plan(TOPIC, max_manifests=1000)
    made.plan()
    [info] = made.store.list(LAYOUT.manifests_folder)
    manifest_id = info.uri.rpartition("/")[2].removesuffix(".json")
    return made.store.read(info.uri).replace(manifest_id.encode(), b"id")


def test_a_hint_is_only_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, or with a wrong one, a plan is the same."""
    monkeypatch.setattr(chain_module, "HINT_AT", 2)
    made, partitions = scene(90)
    made.plan()
    chains = Chains(made.planner().state)
    place = ChainPlace(TOPIC, "one", 0)
    hint = f"{LAYOUT.kafka_folder}main/events/one/0/hint"
    assert chains.head(place) == 90
    assert made.store.stat(hint) is not None
    for wrong in (b"\xff", b"9" * 19 + b".json", b"../../x", b""):
        made.store.put(hint, wrong)
        assert chains.head(place) == 90
    partitions[0].append(VALUE)
    made.plan()
    assert made.is_exact([91])


def test_a_draft_that_cannot_be_read_holds_up_nothing_else() -> None:
    """It stays, each plan tells of it, and all else is planned: what others left, and what is new."""
    made, [partition] = scene(3)
    made.plan()
    state = made.planner().state
    folder = Chains(state).drafts_folder(TOPIC, "one")
    damaged = f"{folder}2026-01-01-damaged.json"
    made.store.put(damaged, b"{")
    [left] = [info.uri for info in made.store.list(LAYOUT.manifests_folder)]
    made.store.delete([left])
    partition.append(*[VALUE] * 3)
    for again in range(2):
        plan = made.plan()
        assert [damaged in str(each) and "restore an earlier version" in str(each) for each in plan.troubles] == [True]
        assert len(plan.totals.manifests) == (0 if again else 2)
    made.store.delete([damaged])
    assert made.is_exact([6])


def test_chains_are_found_by_offset() -> None:
    """The link with an offset, and all chains."""
    made, _ = scene(45, 3)
    made.plan()
    chains = Chains(made.planner().state)
    place = ChainPlace(TOPIC, "one", 0)
    links = list(chains.links(place))
    assert [each.first for each in links] == [0, *[each.end for each in links[:-1]]]
    assert [chains.link_with(place, each.end - 1) for each in links] == links
    assert chains.link_with(place, 45) is None
    assert list(chains.places()) == [place, ChainPlace(TOPIC, "one", 1)]


def test_a_damaged_record_of_one_partition_holds_up_no_other() -> None:
    """It is told; once it is there again, the partition goes on where its chain ended."""
    made, partitions = scene(45, 3)
    made.plan()
    [damaged, *_] = [info.uri for info in made.store.list("s3://lake/s/kafka/") if "/1/links/" in info.uri]
    good = made.store.read(damaged)
    made.store.put(damaged, b"{")
    for each in partitions:
        each.append(*[VALUE] * 10)
    plan = made.plan()
    assert [damaged in str(each) for each in plan.troubles] == [True]
    assert [(each.partition, each.head) for each in plan.partitions] == [(0, 55)]
    made.store.put(damaged, good)
    assert made.plan().troubles == []
    assert made.is_exact([55, 13])


def test_what_retention_removed_of_a_new_partition_is_told() -> None:
    """It came after the topic was planned, so it begins at its first offset. At the first plan nothing is missing."""
    log = MemoryKafka()
    made, parts = Scene(log=log), log.create(TOPIC, "one", 1)
    parts[0].append(*[VALUE] * 20)
    parts[0].remove_before(5)
    assert made.plan().removed == []
    late = MemoryPartition()
    late.append(*[VALUE] * 20)
    late.remove_before(15)
    parts.append(late)
    [removed] = made.plan().removed
    assert (removed.partition, removed.first, removed.end) == (1, 0, 15)
    assert made.plan().removed == []


def test_a_partition_without_a_leader_holds_up_no_other() -> None:
    """It is told, and planned where its chain ended once there is a leader."""
    made, partitions = scene(45, 3)
    made.plan()
    for each in partitions:
        each.append(*[VALUE] * 10)
    partitions[1].is_offline = True
    for _ in range(2):
        plan = made.plan()
        [trouble] = plan.troubles
        assert isinstance(trouble, StoreUnavailable)
        assert "partition 1 could not be asked: " in str(trouble)
        assert "LEADER_NOT_AVAILABLE" in str(trouble)
        assert ([(each.partition, each.head) for each in plan.partitions], plan.unseen) == ([(0, 55)], (1,))
    partitions[1].is_offline = False
    plan = made.plan()
    assert (plan.troubles, plan.unseen) == ([], ())
    assert made.is_exact([55, 13])


def test_a_partition_without_a_leader_at_the_first_plan() -> None:
    """It begins at its earliest offset later, as it would have: nothing that went before is missing."""
    made, partitions = scene(20, 20)
    for each in partitions:
        each.remove_before(5)
    partitions[1].is_offline = True
    assert made.plan().removed == []
    late = MemoryPartition()
    late.append(*[VALUE] * 20)
    late.remove_before(15)
    partitions.append(late)
    partitions[1].is_offline = False
    plan = made.plan()
    assert plan.removed == [KafkaRange(TOPIC, 2, 0, 15)]
    firsts = {number: min(each.first for each in made.ranges() if each.partition == number) for number in range(3)}
    assert firsts == {0: 5, 1: 5, 2: 0}


def test_a_topic_without_any_leader() -> None:
    """Nothing begins; the first plan is the one that has an answer."""
    made, partitions = scene(20)
    partitions[0].remove_before(5)
    partitions[0].is_offline = True
    plan = made.plan()
    assert (plan.unseen, plan.partitions, len(plan.troubles)) == ((0,), [], 1)
    partitions[0].is_offline = False
    assert made.plan().removed == []
    assert made.ranges()[0].first == 5


def test_where_a_chain_began_cannot_be_read() -> None:
    """No loss of a new partition is kept quiet for that, and nothing waits for it."""
    made, partitions = scene(20)
    made.plan()
    made.store.put(f"{LAYOUT.kafka_folder}main/events/one/0/origin.json", b"{")
    partitions.append(MemoryPartition())
    partitions[1].append(*[VALUE] * 20)
    partitions[1].remove_before(15)
    assert made.plan().removed == [KafkaRange(TOPIC, 1, 0, 15)]
