"""Landed topics: each record in one object, gaps under their offsets, whatever becomes of planners and brokers."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.landing import LandedLink
from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import SettingsError
from compactor.core.layout import Layout
from compactor.core.logs.names import LogName, is_log
from compactor.ledger.landing.chains import LogChains, PartitionPlace
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ops.trace.finding import landed_record
from compactor.ops.verify.landed import faults_of_landed
from compactor.sources.landing.lander import Lander, LandingResult
from compactor.sources.landing.lines import ValueLines
from tests.support.harness import DiedError
from tests.support.interleaving import Meddling, at_change, dying
from tests.support.landed import landed_lines
from tests.support.memory_kafka import MemoryKafka, MemoryPartition
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore
from tests.support.sampling import few

LAYOUT = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s")
TOPIC = LogName("kafka", "main", "events")


@dataclass
class Scene:
    """A topic, and what was landed of it."""

    partitions: list[MemoryPartition] = field(init=False)
    clock: ManualClock = field(default_factory=ManualClock)
    store: MemoryStore = field(init=False)
    kafka: MemoryKafka = field(default_factory=MemoryKafka)
    target_bytes: float = 60.0

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.partitions = self.kafka.create(TOPIC, "one", 2)

    def put(self, number: int, partition: int = 0) -> None:
        """Add so many records, each of its own value."""
        found = self.partitions[partition]
        for _ in range(number):
            found.append(b'{"id": "%d-%d"}' % (partition, found.end))

    def state(self, store: Any = None) -> State:
        used = store or self.store
        return State(store=used, layout=LAYOUT, ledger=Ledger(used, LAYOUT, self.clock, "run"), clock=self.clock)

    def lander(self, store: Any = None, log: Any = None) -> Lander:
        return Lander(
            state=self.state(store),
            log=log or self.kafka,
            allowed_prefixes=["kafka://main/events", "kafka://main/none"],
            target_bytes=lambda: self.target_bytes,
            new_lines=lambda _log, _partition: ValueLines(),
            metrics=MemoryMetrics(),
            object_bytes=30,
        )

    def plan(self, store: Any = None, **options: Any) -> LandingResult:
        return self.lander(store).land(TOPIC, **{"max_manifests": 1000, **options})

    def files(self) -> list[ManifestFile]:
        """What all manifests name."""
        names = (info.uri.rpartition("/")[2].removesuffix(".json") for info in self.store.list(LAYOUT.manifests_folder))
        records = map(self.state().ledger.accepted, names)
        return [file for each in records if each is not None and each.manifest for file in each.manifest.files]

    def lines(self) -> Counter[bytes]:
        """The lines of all objects that manifests name."""
        return Counter(
            line for file in self.files() if not is_log(file.uri) for line in landed_lines(self.store, file.uri)
        )

    def gaps(self) -> list[str]:
        return [file.uri for file in self.files() if is_log(file.uri)]

    def links(self, partition: int = 0, topic_id: str = "one") -> list[LandedLink]:
        place = PartitionPlace(TOPIC, topic_id, str(partition))
        return list(LogChains(self.state()).chain(place).links())

    def is_exact(self) -> bool:
        """Whether each value that is there is one line, and nothing else is."""
        there = (value for each in self.partitions for value in each.records.values() if value is not None)
        return self.lines() == Counter(there) and not list(faults_of_landed(self.state()))


def test_each_landing_goes_on_where_the_last_one_ended() -> None:
    """With offsets that have no record, of markers, aborted records and compaction, and with tombstones."""
    made = Scene()
    assert made.plan().manifests == []
    made.put(3)
    made.partitions[0].append(None)
    made.partitions[0].skip(2)
    made.put(4, 1)
    plan = made.plan()
    assert (plan.lines, plan.tombstones, plan.behind_seconds, plan.has_more) == (7, 1, 0.0, False)
    assert (made.links()[-1].last, made.links(1)[-1].last) == ("6", "4")
    assert made.plan().lines == 0
    made.put(2)
    assert made.plan().lines == 2
    assert made.is_exact()


def test_offsets_without_any_record_are_passed() -> None:
    """By a link without an object: else each landing would read them again, and they would seem to wait."""
    made = Scene()
    made.plan()
    made.partitions[0].skip(5)
    plan = made.plan()
    assert (plan.manifests, plan.behind_seconds) == ([], 0.0)
    [link] = made.links()
    assert (link.after, link.last, link.uri, link.records) == ("0", "5", "", 0)


def test_run_once_lands_all_that_was_there() -> None:
    """One landing after the other with one bound, however many partitions there are and whatever was landed before."""
    made = Scene()
    made.put(20)
    made.put(20, 1)
    until = made.clock.now()
    made.clock.advance(5)
    while made.plan(max_manifests=1, until=until).has_more:
        made.clock.advance(5)
    assert made.is_exact()


def test_what_retention_removed_is_named_by_its_offsets() -> None:
    """In a manifest with what is behind it, or alone; and told once."""
    made = Scene()
    made.put(3)
    made.plan()
    made.put(4)
    made.partitions[0].remove_before(5)
    plan = made.plan()
    assert [str(each) for each in plan.gaps] == made.gaps() == [f"{TOPIC}/0?from=3&to=5"]
    assert [each.words for each in plan.gaps] == ["offsets 3 to 4"]
    assert plan.gaps
    made.partitions[0].skip(3)
    made.partitions[0].remove_before(10)
    assert [str(each) for each in made.plan().gaps] == [f"{TOPIC}/0?from=7&to=10"]
    assert (made.plan().gaps, made.plan().lines) == ([], 0)
    assert made.links()[-1].last == "10"
    assert list(faults_of_landed(made.state())) == []


def test_retention_that_overtakes_a_reading() -> None:
    """The next piece begins with the gap."""
    made = Scene()
    made.put(12)
    overtake = at_change(6, lambda: made.partitions[0].remove_before(11))
    plan = made.plan(Meddling(made.store, overtake))
    [gap] = plan.gaps
    there = {int(line.split(b"-")[1][:-2]) for line in made.lines()}
    assert there | set(range(gap.after, gap.before - 1)) == set(range(12))
    assert not there & set(range(gap.after, gap.before - 1))


def test_a_chain_begins_at_the_earliest_record_there_is() -> None:
    """Of a partition that is new at its first offset: what retention removed of it is told."""
    made = Scene()
    made.put(4)
    made.partitions[0].remove_before(2)
    assert made.plan().gaps == []
    assert made.links()[0].after == "2"
    made.partitions.append(MemoryPartition())
    made.put(3, 2)
    made.partitions[2].remove_before(1)
    assert [str(each) for each in made.plan().gaps] == [f"{TOPIC}/2?from=0&to=1"]
    assert made.is_exact()


def test_a_partition_without_a_leader_holds_up_no_other() -> None:
    """It waits; at the first landing it was there, so its chain begins at the earliest record it has then."""
    made = Scene()
    made.put(3)
    made.put(3, 1)
    made.partitions[1].is_offline = True
    plan = made.plan()
    assert (plan.lines, len(plan.troubles), plan.has_read) == (3, 1, True)
    made.clock.advance(100)
    assert made.plan().behind_seconds == 100.0
    made.partitions[1].is_offline = False
    made.partitions[1].remove_before(1)
    plan = made.plan()
    assert (plan.lines, plan.gaps, plan.troubles) == (2, [], [])
    made.partitions[1].is_offline = True
    made.put(2, 1)
    made.partitions[1].remove_before(4)
    made.plan()
    made.partitions[1].is_offline = False
    assert [str(each) for each in made.plan().gaps] == [f"{TOPIC}/1?from=3&to=4"]


def test_a_log_that_was_cut_off_is_told() -> None:
    """As trouble, until it is as long as it was."""
    made = Scene()
    made.put(3)
    made.put(3, 1)
    made.plan()
    made.partitions[0].end = 1
    made.put(1, 1)
    plan = made.plan()
    assert plan.lines == 1
    assert "ends at offset 1" in str(plan.troubles)
    made.partitions[0].end = 5
    assert made.plan().troubles == []


def test_an_open_transaction_is_late_at_last() -> None:
    """What it holds may have come right after the partition was last seen to be empty."""
    made = Scene()
    made.put(2)
    made.plan()
    made.clock.advance(50)
    made.partitions[0].undecided = 3
    assert made.plan().behind_seconds == 50.0
    made.partitions[0].undecided = 0
    made.put(3)
    assert made.plan().behind_seconds == 0.0


@pytest.mark.parametrize("name", ["none", "others"])
def test_topics_that_cannot_be_landed(name: str) -> None:
    """One that is not there, and one that input may not come from."""
    with pytest.raises(SettingsError, match="expected"):
        Scene().lander().land(LogName("kafka", "main", name), max_manifests=1)


@pytest.mark.parametrize("at", few(range(40), 20))
def test_a_planner_that_dies_anywhere(at: int) -> None:
    """The next one finishes what it began, and lands the rest."""
    made = Scene()
    made.put(2)
    made.plan()
    made.put(6)
    made.partitions[0].remove_before(3)
    made.put(5, 1)
    with suppress(DiedError):
        made.plan(Meddling(made.store, dying(at)))
    made.plan()
    there = Counter(value for each in made.partitions for value in each.records.values())
    assert made.lines() - there == Counter([b'{"id": "0-0"}', b'{"id": "0-1"}'])
    assert there - made.lines() == Counter()
    assert made.gaps() == [f"{TOPIC}/0?from=2&to=3"]
    assert list(faults_of_landed(made.state())) == []


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4), st.integers(0, 3)), max_size=6))
def test_any_planners_between_each_other(steps: list[tuple[int, int, int]]) -> None:
    """Each record is landed once, whenever others land in between."""
    made = Scene()
    made.put(4)

    def landing(left: list[tuple[int, int, int]]) -> None:
        at, records, most = left[0]

        def meet() -> None:
            made.put(records, records % 2)
            if left[1:]:
                landing(left[1:])

        made.plan(Meddling(made.store, at_change(at, meet)), max_manifests=most)

    if steps:
        landing(steps)
    made.plan()
    made.plan()
    assert made.is_exact()


def test_records_are_traced() -> None:
    """To their line where each offset has one, else to their object; and to gaps."""
    made = Scene()
    made.target_bytes = 1000
    made.put(3)
    made.plan()
    made.partitions[0].append(None)
    made.put(2)
    made.plan()
    made.put(2)
    made.partitions[0].remove_before(7)
    made.plan()

    def words(ending: str) -> str:
        found = landed_record(made.state(), f"{TOPIC}/0?{ending}")
        return "" if found is None else found.words

    assert words("offset=1").startswith("offset 1 of id one is line 2 of this object")
    assert "unless it has no value" in words("offset=3")
    assert "is in this gap" in words("offset=6")
    assert words("from=6&to=7") == "this gap of id one: offsets 6 to 6"
    assert words("offset=9") == ""
