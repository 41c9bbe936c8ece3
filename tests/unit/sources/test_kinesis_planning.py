"""Landed streams: each record in one object, each object in one manifest, whatever becomes of planners and shards."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactor.core.documents.landing import LandedLink
from compactor.core.documents.manifest import Manifest
from compactor.core.documents.manifest_parsing import parse_manifest
from compactor.core.errors import AccessError, ManifestError, StoreUnavailable
from compactor.core.layout import Layout, base_name, redriven_id
from compactor.core.logs.names import LogGap, LogName, is_log
from compactor.core.logs.ports import Batch, LiveLog, LogRecord
from compactor.ledger.landing.chains import Head, LogChains, PartitionPlace
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.ops.verify.landed import faults_of_landed
from compactor.sources.landing.drafts import Landing
from compactor.sources.landing.lander import Lander, LandingResult
from compactor.sources.landing.lines import ShardLines, Strays
from compactor.sources.landing.partitions import PartitionReader, Partitions, Reading
from tests.support.harness import DiedError
from tests.support.interleaving import Meddling, at_change, dying
from tests.support.kpl import aggregated
from tests.support.landed import landed_lines
from tests.support.logged import events_logged
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore
from tests.support.sampling import few

LAYOUT = Layout("s3://lake/m", "s3://lake/o", "s3://lake/s")
DAY = timedelta(hours=24).total_seconds()


@dataclass
class Scene:
    """A stream, and what planners have landed of it."""

    clock: ManualClock = field(default_factory=ManualClock)
    store: MemoryStore = field(init=False)
    kinesis: MemoryKinesis = field(init=False)
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)
    target_bytes: float = 60.0
    object_bytes: int = 30
    stray_rule: Strays = "keep"
    written: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.kinesis = MemoryKinesis(self.clock)
        self.kinesis.most_records = 3

    def put(self, number: int, shard: str = "") -> None:
        """Add so many records."""
        for _ in range(number):
            value = b'{"id": %d}' % len(self.written)
            self.kinesis.put(value, shard=shard)
            self.written.append(value)

    def planner(self, store: Any = None, **options: Any) -> Lander:
        used = store or self.store
        state = State(store=used, layout=LAYOUT, ledger=Ledger(used, LAYOUT, self.clock, "run"), clock=self.clock)
        return Lander(
            state=state,
            log=self.kinesis.log(),
            allowed_prefixes=["kinesis://main"],
            target_bytes=lambda: self.target_bytes,
            new_lines=lambda _, partition: ShardLines(shard=partition, stray_rule=self.stray_rule),
            metrics=self.metrics,
            object_bytes=self.object_bytes,
            **options,
        )

    def plan(self, store: Any = None, **options: Any) -> LandingResult:
        return self.planner(store).land(STREAM, **{"max_manifests": 1000, **options})

    def manifests(self) -> Iterator[Manifest]:
        """All that were written, as intake reads them."""
        for info in self.store.list(LAYOUT.manifests_folder):
            yield parse_manifest(
                self.store.read(info.uri),
                uri=info.uri,
                modified_at=info.modified_at,
                allowed_prefixes=["kinesis://main"],
                redriven_folder=LAYOUT.redriven_folder,
            )

    def lines(self) -> list[bytes]:
        """The lines of all objects that manifests name."""
        files = [file for manifest in self.manifests() for file in manifest.files if not is_log(file.uri)]
        assert all((found := self.store.stat(file.uri)) and found.etag == file.etag for file in files)
        return [line for file in files for line in landed_lines(self.store, file.uri)]

    def gaps(self) -> list[str]:
        """The gaps that manifests name."""
        return [file.uri for manifest in self.manifests() for file in manifest.files if is_log(file.uri)]

    def is_exact(self, *, lost: int = 0) -> bool:
        """Whether each record is one line of one manifest, without so many of the first ones."""
        return Counter(self.lines()) == Counter(self.written[lost:])

    def links(self, partition_id: str) -> list[LandedLink]:
        chains = LogChains(self.planner().state)
        [place] = [each for each in chains.places(STREAM) if each.partition_id == partition_id]
        return list(chains.chain(place).links())

    def left(self) -> list[str]:
        """Objects that no manifest names, marks, and drafts of manifests that do not wait."""
        manifests = list(self.manifests())
        named = {file.uri for manifest in manifests for file in manifest.files}
        drafted = {f"{manifest.manifest_id}.json" for manifest in manifests}
        found = [info.uri for info in self.store.list("s3://lake/s/")]
        return [
            uri
            for uri in found
            if ("/landed/" in uri and uri not in named)
            or ("/drafts/" in uri and base_name(uri) not in drafted)
            or "/landing/" in uri
        ]


def left_by(made: Scene, is_over: Callable[[], bool]) -> None:
    """Have a planner die as soon as something is left."""

    def die() -> None:
        if is_over():
            raise DiedError

    with suppress(DiedError):
        made.plan(Meddling(made.store, die))


def has_origin(made: Scene, shard: str) -> bool:
    """Whether a chain of a shard is begun."""
    return any(f"/{shard}/origin" in info.uri for info in made.store.list("s3://lake/s/"))


def scene(shards: int = 1) -> tuple[Scene, list[str]]:
    made = Scene()
    return made, made.kinesis.create(shards=shards)


def test_each_plan_goes_on_where_the_last_one_ended() -> None:
    """Manifests name what was landed, in objects of about the right length."""
    made, _ = scene(2)
    assert made.plan().manifests == []
    made.put(40)
    plan = made.plan()
    assert (plan.lines, plan.gaps, plan.behind_seconds) == (40, [], 0.0)
    assert len(plan.manifests) > 3
    assert made.is_exact()
    assert made.plan().manifests == []
    made.put(5)
    assert made.plan().lines == 5
    assert made.is_exact()
    assert made.left() == []
    [first, *_] = made.manifests()
    assert (first.version, made.gaps()) == (1, [])
    assert {file.dated_by for file in first.files} == {"arrival"}
    assert made.metrics.emitted[-1] == {"LandingAgeSeconds": 0.0}
    assert made.metrics.emitted_about[-1] == ({"Log": "kinesis://main/events"}, {"LandingAgeSeconds": 0.0})


def test_landed_objects_belong_to_one_manifest() -> None:
    """Another one may not name them, but its redrives may."""
    made, _ = scene()
    made.put(1)
    made.plan()
    [manifest] = made.manifests()

    def read_as(manifest_id: str) -> Manifest:
        return parse_manifest(
            manifest.model_copy(update={"manifest_id": manifest_id}).to_json(),
            uri="s3://lake/m/x.json",
            modified_at=made.clock.now(),
            allowed_prefixes=["kinesis://main"],
            redriven_folder=LAYOUT.redriven_folder,
        )

    assert read_as(redriven_id(manifest.manifest_id, 1)).files == manifest.files
    with pytest.raises(ManifestError, match="is not below one of the allowed prefixes"):
        read_as("other")


def test_parents_come_before_their_children() -> None:
    """Over splits and merges, in one plan and in several; bounded plans stop in between."""
    made, [shard] = scene()
    made.put(7)
    low, high = made.kinesis.split(shard)
    made.put(9)
    made.plan(max_manifests=1)
    assert "landed" not in "".join(made.left())
    merged = made.kinesis.merge(low, high)
    made.put(8)
    plan = made.plan(max_manifests=1)
    assert plan.has_more
    while made.plan(max_manifests=1).has_more:
        pass
    assert made.is_exact()
    assert [made.links(each)[-1].closes for each in (shard, low, high, merged)] == [True, True, True, False]
    order = [line for line in made.lines() if line in made.written[:7]]
    assert len(order) == 7


def test_a_child_waits_for_its_parents() -> None:
    """As long as one of them has more."""
    made, [shard] = scene()
    made.put(30)
    made.kinesis.split(shard)
    plan = made.plan(max_manifests=1)
    assert (plan.waiting, plan.closed) == (2, 0)


def test_a_dry_run_writes_nothing() -> None:
    """It shows what a plan would write, also behind shards that ended."""
    made, [shard] = scene()
    made.put(9)
    made.kinesis.split(shard)
    made.put(9)
    plan = made.plan(dry_run=True)
    assert (plan.lines, plan.closed) == (18, 1)
    assert sum(each.files for each in plan.manifests) >= 2
    assert not list(made.store.list("s3://lake/"))
    assert made.metrics.emitted == []


def test_a_stream_made_again_is_another_one() -> None:
    """Nothing of it is taken for that of the former one."""
    made, _ = scene()
    made.put(3)
    made.plan()
    made.clock.advance(60)
    made.kinesis.create(shards=2)
    made.put(4)
    plan = made.plan()
    assert (plan.lines, len(plan.former_ids)) == (4, 1)
    assert made.is_exact()


def test_what_retention_removed_is_told_once() -> None:
    """By the exact sequence numbers, and the rest is landed."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    made.clock.advance(DAY + 1)
    made.put(4)
    plan = made.plan()
    assert plan.gaps
    assert plan.gaps == [LogGap(STREAM, shard, 7 * 3, 7 * 6)]
    assert Counter(made.lines()) == Counter(made.written[:3] + made.written[5:])
    assert made.plan().gaps == []
    assert [link.gap for link in made.links(shard)] == [False, True, False][: len(made.links(shard))]


def test_an_idle_shard_that_was_watched_has_no_gap() -> None:
    """Its last record may be gone for long: plans have seen that nothing came behind it."""
    made, _ = scene()
    made.put(3)
    for _ in range(5):
        made.plan()
        made.clock.advance(DAY / 2)
    made.put(2)
    assert made.plan().gaps == []
    assert made.is_exact()


def test_a_shard_that_was_watched_long_ago_may_have_a_gap() -> None:
    """What came since may be gone."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.clock.advance(DAY / 4)
    made.plan()
    made.put(2)
    made.clock.advance(DAY + 1)
    made.put(1)
    assert made.plan().gaps == [LogGap(STREAM, shard, 21, 42)]


def test_an_idle_shard_that_was_not_watched_may_have_one() -> None:
    """It is told when that is seen, and is on record with the next records."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.clock.advance(2 * DAY)
    assert made.plan().gaps == [LogGap(STREAM, shard, 21, 0)]
    assert made.plan().gaps == []
    made.put(2)
    assert made.plan().gaps == []
    assert made.is_exact()
    assert made.gaps() == [f"{STREAM}/{shard}?after=21"]
    made.clock.advance(2 * DAY)
    made.plan()
    made.clock.advance(2 * DAY)
    made.plan()
    made.put(1)
    assert made.plan().gaps == []
    assert made.gaps()[1:] == [f"{STREAM}/{shard}?after={each}" for each in (35, 36)]
    assert made.is_exact()


def test_a_gap_is_no_record_of_a_shard() -> None:
    """It takes up a position; what its children lost is told all the same."""
    made, [shard] = scene()
    made.plan()
    made.clock.advance(2 * DAY)
    made.plan()
    assert [each.gap for each in made.links(shard)] == [True]
    chains = LogChains(made.planner().state)
    [place] = chains.places(STREAM)
    reading: Any = SimpleNamespace(name=STREAM)
    live, began_at = LiveLog(place.log_id), made.clock.now()
    landing = Landing(chains, STREAM, place.log_id)
    partitions = Partitions(landing=landing, of=reading, live=live, began_at=began_at, writes=True)
    assert not partitions._had_records(shard)
    made.put(1)
    made.plan()
    assert partitions._had_records(shard)


@pytest.mark.parametrize("step", range(20))
@pytest.mark.parametrize("comes", [False, True])
def test_two_planners_that_find_the_gap_of_an_idle_shard(step: int, comes: bool) -> None:
    """One manifest names it, with its end if a record came before that.

    Args:
        step: At which the first planner is held up, while the other one plans.
        comes: Whether a record comes before the other one looks.
    """
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    made.clock.advance(2 * DAY)
    plans, is_met = list[LandingResult](), list[int]()

    def meet() -> None:
        is_met.append(1)
        made.put(int(comes))
        plans.append(made.plan())

    plans.append(made.plan(Meddling(made.store, at_change(step, meet))))
    made.put(2)
    plans.append(made.plan())
    idle, with_end = f"{STREAM}/{shard}?after=21", f"{STREAM}/{shard}?after=21&before=42"
    named = made.gaps()
    assert named in ([idle], [with_end] if comes and is_met else [idle])
    assert {str(gap) for plan in plans for gap in plan.gaps} == set(named)
    landed = Counter(made.lines())
    assert landed == Counter(made.written[:3] + made.written[5:])
    assert list(faults_of_landed(made.planner().state)) == []
    assert made.left() == []


def test_a_new_chain_has_no_gap() -> None:
    """It begins with what is there. What goes before its first link is told."""
    made, [shard] = scene()
    made.put(5)
    made.clock.advance(DAY / 2)
    made.put(5)
    made.clock.advance(DAY / 2 + 1)
    plan = made.plan()
    assert (plan.gaps, plan.lines) == ([], 5)
    made, [shard] = scene()
    made.put(5)
    left_by(made, lambda: has_origin(made, shard))
    made.clock.advance(DAY + 1)
    made.put(2)
    assert made.plan().gaps == [LogGap(STREAM, shard, 0, 7 * 6)]


def test_answers_without_records_are_not_the_end() -> None:
    """As long as they are behind the tip."""
    made, _ = scene()
    made.put(4)
    made.kinesis.empty_answers = 3
    assert made.plan().lines == 4
    made.put(2)
    made.kinesis.empty_answers = 3
    plan = made.plan()
    assert (plan.lines, plan.gaps) == (2, [])


def test_an_iterator_that_expires() -> None:
    """Reading goes on from the last record, which has to be there still."""
    made, _ = scene()
    made.put(12)
    made.kinesis.refusals = []
    slow = made.planner(Meddling(made.store, lambda: made.clock.advance(200)))
    assert slow.land(STREAM, max_manifests=1000).gaps == []
    made.plan()
    assert made.is_exact()


@pytest.mark.parametrize("step", few(range(40), 14))
def test_planners_that_die(step: int) -> None:
    """At any step: the next plan lands what is left, and nothing twice."""
    made, [shard] = scene()
    made.put(12)
    made.kinesis.split(shard)
    made.put(9)
    with suppress(DiedError):
        made.plan(Meddling(made.store, dying(step)))
    made.plan()
    assert made.is_exact()
    made.clock.advance(DAY / 2)
    made.plan()
    made.clock.advance(DAY / 2 + 1)
    made.plan()
    assert made.is_exact()
    assert made.left() == []


@pytest.mark.parametrize("step", few(range(0, 60, 2), 10))
def test_planners_beside_each_other(step: int) -> None:
    """One that is held up at any step, while another one plans, and more records come."""
    made, [shard] = scene()
    made.put(12)

    def meet() -> None:
        made.put(5)
        made.kinesis.split(shard)
        made.put(8)
        made.plan()

    made.plan(Meddling(made.store, at_change(step, meet)))
    made.plan()
    assert made.is_exact()
    made.clock.advance(DAY + 1)
    made.plan()
    made.plan()
    assert made.left() == []


@pytest.mark.parametrize("step", range(30))
def test_a_planner_that_is_held_up_for_days(step: int) -> None:
    """Another one has landed its records meanwhile, and swept: the late one names nothing that is gone."""
    made, [shard] = scene()
    made.kinesis.retention = timedelta(days=7)
    made.put(12)

    def meet() -> None:
        made.clock.advance(DAY + 1)
        made.plan(max_manifests=(step + 1) % 3)
        made.put(3)
        made.kinesis.split(shard)
        made.put(3)

    made.plan(Meddling(made.store, at_change(step, meet)))
    made.plan()
    assert made.is_exact()
    made.clock.advance(DAY + 1)
    made.plan()
    assert made.is_exact()
    assert made.left() == []


def test_retention_that_overtakes_a_reading() -> None:
    """Records that go while others are read are told, as if the plan had begun behind them."""
    made, _ = scene()
    made.put(3)
    made.clock.advance(DAY / 2)
    made.put(3)
    made.clock.advance(DAY / 2 - 600)
    made.target_bytes, made.object_bytes = 1.0, 1
    made.put(3)
    made.plan(max_manifests=0)
    slow = made.planner(Meddling(made.store, lambda: made.clock.advance(DAY / 8)))
    plan = slow.land(STREAM, max_manifests=1000)
    landed = Counter(made.lines())
    missing = [value for value in made.written if value not in landed]
    assert missing
    assert plan.gaps
    told = {each for gap in plan.gaps for each in range(int(gap.after) + 7, int(gap.before or 7 * 10), 7)}
    assert set(missing) == {made.written[each // 7 - 1] for each in told}
    assert max(landed.values()) == 1


def test_retention_that_overtakes_an_iterator() -> None:
    """Slower than iterators expire: Kinesis passes over what is gone without a word."""
    made, _ = scene()
    for _ in range(60):
        made.put(1)
        made.clock.advance(60)
    made.clock.advance(DAY - 3600 - 30)
    made.kinesis.most_records = 1
    made.target_bytes, made.object_bytes = 1.0, 1
    slow = made.planner(Meddling(made.store, lambda: made.clock.advance(15)))
    plan = slow.land(STREAM, max_manifests=1000)
    told = {each for gap in plan.gaps for each in range(int(gap.after) + 7, int(gap.before or 7 * 61), 7)}
    missing = [value for value in made.written if value not in made.lines()]
    assert missing
    assert set(missing) == {made.written[each // 7 - 1] for each in told}


def test_a_gap_amid_a_reading_begins_a_piece() -> None:
    """What is before it is whole, so the gap has the numbers between which records are lost."""
    made, _ = scene()
    now = made.clock.now()
    answers = [[Batch([LogRecord(7, b"{}", now)], 9.0)], [Batch([LogRecord(28, b"{}", now)], 9.0), Batch([])]]

    class Twice:
        def read(self, *_: Any) -> Iterator[Batch]:
            return (each for each in answers.pop(0))

    [shard] = made.kinesis.log().partitions(STREAM)
    head = Head(after=0, anchor=0, whole_since=now, latest=now)
    log: Any = Twice()
    reading = Reading(
        log=log,
        name=STREAM,
        until=now + timedelta(1),
        new_lines=lambda _, partition: ShardLines(shard=partition),
        piece_bytes=1000,
        now=made.clock.now,
    )
    reader = PartitionReader(reading, shard, head)
    links = [piece[0] for _ in range(3) if (piece := reader.piece("m"))]
    assert [(each.after, each.begins, each.last, each.gap) for each in links] == [
        ("0", "7", "7", False),
        ("7", "28", "28", True),
    ]


def test_a_parent_that_no_plan_saw() -> None:
    """A shard of two parents tells of the one that came and went between two plans."""
    made, [low, high] = scene(2)
    made.put(2)
    made.plan()
    _, middle = made.kinesis.split(low)
    made.put(2, middle)
    merged = made.kinesis.merge(middle, high)
    made.clock.advance(DAY + 7200)
    made.put(2, merged)
    plan = made.plan()
    assert merged in {gap.partition_id for gap in plan.gaps}
    assert any(f"/{merged}?" in uri for uri in made.gaps())


def test_a_parent_of_the_first_plan_that_was_never_read() -> None:
    """It goes before a plan could begin with it, and its children tell of that, although they are whole."""
    made, [shard] = scene()
    made.put(3)
    low, high = made.kinesis.split(shard)
    made.clock.advance(DAY - 1800)
    made.put(2, low)
    made.put(2, high)
    assert len(planned_with(made, Silent(made, shard)).troubles) == 1
    made.clock.advance(3600)
    assert {gap.partition_id for gap in made.plan().gaps} == {low, high}
    assert made.is_exact(lost=3)


def test_a_parent_that_was_empty_at_the_first_plan() -> None:
    """It tells nothing of what its children had by then: if that goes before it is landed, the gap is told."""
    made, [shard] = scene()
    low, high = made.kinesis.split(shard)
    made.put(3, low)
    made.clock.advance(DAY - 1800)
    made.put(2, high)
    left_by(made, lambda: has_origin(made, low))
    assert low in {each.partition_id for each in _places(made)}
    made.clock.advance(3600)
    made.put(2, low)
    assert made.plan().gaps == [LogGap(STREAM, low, 0, 42)]
    assert made.is_exact(lost=3)


def test_a_shard_that_is_listed_no_more() -> None:
    """Its records are gone with it: it ends with a gap, and its children begin."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    low, high = made.kinesis.split(shard)
    made.clock.advance(DAY / 2)
    made.put(3)
    made.clock.advance(DAY / 2 + 1)
    made.put(4)
    plan = made.plan()
    assert plan.gaps[0] == LogGap(STREAM, shard, 21, 0)
    assert plan.closed == 1
    assert Counter(made.lines()) == Counter(made.written[:3] + made.written[5:])
    assert made.plan().gaps == []
    assert made.links(shard)[-1].closes
    assert [made.links(each)[-1].closes for each in (low, high)] == [False, False]


def test_generations_of_shards_that_no_plan_saw() -> None:
    """What their grandchildren have begins with a gap, although they have no parent that was landed."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    low, _ = made.kinesis.split(shard)
    made.put(3)
    made.clock.advance(60)
    first, second = made.kinesis.split(low)
    made.clock.advance(DAY + 1)
    made.put(9)
    plan = made.plan()
    assert {gap.partition_id for gap in plan.gaps} >= {first, second} & {each.partition_id for each in _places(made)}
    assert Counter(made.lines()) == Counter(made.written[:3] + made.written[6:])


def _places(made: Scene) -> Iterator[PartitionPlace]:
    return LogChains(made.planner().state).places(STREAM)


def test_a_child_begins_where_its_parents_ended() -> None:
    """It has a gap only if they were landed more than a day before it was first read."""
    made, [shard] = scene()
    made.put(3)
    made.kinesis.split(shard)
    made.plan(max_manifests=1)
    made.clock.advance(DAY / 2)
    made.put(3)
    assert made.plan().gaps == []
    made, [shard] = scene()
    made.put(3)
    made.plan(max_manifests=1)
    made.kinesis.split(shard)
    made.put(3)
    made.plan(max_manifests=1)
    made.clock.advance(DAY + 3600)
    made.put(3)
    assert made.plan(max_manifests=100).gaps != []


def test_strays_are_left_out_as_asked() -> None:
    """And told."""
    made, shards = scene(2)
    made.stray_rule = "drop"
    made.kinesis.put(aggregated([("a", b"1"), ("b", b"2")], hashes=[0, 2**128 - 1]), shard=shards[0])
    plan = made.planner().land(STREAM, max_manifests=9)
    assert (plan.strays, plan.lines, made.lines()) == (2, 0, [])
    assert made.plan().lines == 0


def test_strays_are_left_out_piece_by_piece() -> None:
    """However many there are: a planner that dies among them has put on record how far it was."""
    made, shards = scene(2)
    made.stray_rule = "drop"
    for _ in range(30):
        made.kinesis.put(aggregated([("a", b"1"), ("b", b"2")], hashes=[0, 2**128 - 1]), shard=shards[0])
    with suppress(DiedError):
        made.plan(Meddling(made.store, dying(12)))
    made.planner().land(STREAM, max_manifests=9)
    assert sum(link.strays for link in made.links(shards[0])) == 60
    assert len(made.links(shards[0])) > 5


def test_a_draft_that_cannot_be_read_holds_up_nothing_else() -> None:
    """It stays, each plan tells of it, and the records of the stream are landed."""
    made, _ = scene()
    made.put(3)
    made.plan()
    [log_id] = LogChains(made.planner().state).log_ids(STREAM)
    folder = LogChains(made.planner().state).drafts_folder(STREAM, log_id)
    made.store.put(f"{folder}2026-01-01-damaged.json", b"{")
    made.put(3)
    for _ in range(2):
        plan = made.plan()
        assert ["2026-01-01-damaged.json" in str(each) for each in plan.troubles] == [True]
    assert made.is_exact()


def test_trouble_with_one_shard() -> None:
    """The others are landed all the same, and the next plan goes on."""
    made, shards = scene(2)
    made.put(5, shards[0])
    made.put(5, shards[1])
    made.plan()
    made.put(5, shards[0])
    made.put(5, shards[1])

    def refuse(shard: str) -> None:  # it answers once, and then no more
        if shard == shards[0]:
            raise StoreUnavailable("it is throttled")

    made.object_bytes = 1000
    plan = planned_with(made, Between(made, refuse))
    assert [str(each) for each in plan.troubles] == ["it is throttled"]
    assert Counter(made.lines()) == Counter(made.written[:10] + made.written[10:12] + made.written[15:])
    assert made.plan().gaps == []
    assert made.is_exact()


class Between:
    """A log that calls a function after some answers of a shard."""

    def __init__(self, made: Scene, after_answer: Callable[[str], None]) -> None:
        self.log, self.after_answer = made.kinesis.log(), after_answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def read(self, stream: LogName, partition_id: str, at: int, limit_bytes: int) -> Iterator[Batch]:
        for batch in self.log.read(stream, partition_id, at, limit_bytes):
            yield batch
            self.after_answer(partition_id)


class Silent(Between):
    """A log with a shard that gives no answer."""

    def __init__(self, made: Scene, partition_id: str, error: Exception | None = None) -> None:
        super().__init__(made, lambda _: None)
        self.partition_id, self.error = partition_id, error or StoreUnavailable("no answer")

    def read(self, stream: LogName, partition_id: str, at: int, limit_bytes: int) -> Iterator[Batch]:
        if partition_id == self.partition_id:
            raise self.error
        yield from self.log.read(stream, partition_id, at, limit_bytes)


def planned_with(made: Scene, log: Any, **options: Any) -> LandingResult:
    return replace(made.planner(), log=log).land(STREAM, **{"max_manifests": 1000, **options})


def test_a_stream_that_is_made_again_while_it_is_planned() -> None:
    """Its records are not taken for those of the former one, which would land them twice."""
    made, _ = scene()
    made.put(3)
    made.plan()
    made.clock.advance(60)
    made.put(3)
    again: list[int] = []

    def make_again(_: str) -> None:
        if not again:
            again.append(1)
            made.kinesis.create()
            made.written[3:] = []
            made.put(5)

    plan = planned_with(made, Between(made, make_again), max_manifests=1)
    assert "recreated while being landed" in str(plan.troubles)
    assert made.plan().lines == 5
    assert made.is_exact()


def test_retention_that_is_lowered_while_a_stream_is_planned() -> None:
    """What was thought to be kept may be gone, so that nothing is landed that may follow a gap."""
    made, _ = scene()
    made.kinesis.retention = timedelta(days=7)
    made.put(9)

    def lower(_: str) -> None:
        made.kinesis.retention = timedelta(days=1)

    plan = planned_with(made, Between(made, lower))
    assert "its retention was lowered" in str(plan.troubles)
    assert (plan.lines, made.lines()) == (0, [])
    assert made.plan().lines == 9


def test_a_shard_that_fails_after_some_answers_in_each_plan() -> None:
    """It advances all the same: what was read before the trouble is landed."""
    made, _ = scene()
    made.object_bytes = 1000
    made.put(12)
    calls: list[int] = []

    def refuse(_: str) -> None:
        calls.append(1)
        if len(calls) % 3 == 0:
            raise StoreUnavailable("it is throttled")

    for _ in range(6):
        planned_with(made, Between(made, refuse))
    assert made.is_exact()


def test_trouble_with_a_new_shard() -> None:
    """The others are landed all the same, and the age tells how long its records may wait."""
    made, shards = scene(2)
    made.put(5, shards[0])
    made.put(5, shards[1])
    for hours in (0, 2):
        made.clock.advance(hours * 3600)
        plan = planned_with(made, Silent(made, shards[0], AccessError("it may not be read")))
        assert [str(each) for each in plan.troubles] == ["it may not be read"]
        assert plan.behind_seconds == pytest.approx(hours * 3600.0)
    assert Counter(made.lines()) == Counter(made.written[5:])
    assert made.plan().gaps == []
    assert made.is_exact()


def test_gaps_are_told_whatever_else_fails() -> None:
    """In the report of the plan, and in a manifest."""
    made, shards = scene(2)
    made.put(3, shards[0])
    made.put(3, shards[1])
    made.plan()
    made.put(1, shards[0])
    made.clock.advance(DAY + 1)
    made.put(2, shards[0])

    plan = planned_with(made, Silent(made, shards[1]))
    assert LogGap(STREAM, shards[0], 21, 56) in plan.gaps
    assert plan.gaps
    assert len(plan.troubles) == 1
    assert f"{STREAM}/{shards[0]}?after=21&before=56" in made.gaps()


def test_the_age_of_shards_without_an_answer() -> None:
    """Their records may have waited since the last that is known of them."""
    made, shards = scene(2)
    made.put(2, shards[0])
    made.put(2, shards[1])
    made.plan()
    made.clock.advance(5000)
    made.put(2, shards[1])
    assert planned_with(made, Silent(made, shards[1])).behind_seconds == 5000.0


def test_bounded_plans_leave_no_shard_behind() -> None:
    """The shard that waits longest comes first, whatever comes into those that are listed before it."""
    made, shards = scene(12)
    made.target_bytes = 1.0
    for shard in shards:
        made.put(1, shard)
    for _ in range(6):
        made.clock.advance(60)
        for shard in shards[:8]:
            made.put(3, shard)
        made.plan(max_manifests=1)
    assert set(made.written[8:12]) <= set(made.lines())


def test_no_false_gaps_after_a_first_plan_that_failed() -> None:
    """A shard that was listed in the first plan begins where it begins, whenever that is within a day."""
    made, [shard] = scene()
    low, high = made.kinesis.split(shard)
    made.clock.advance(DAY + 1)
    made.put(4, low)
    made.put(4, high)

    assert len(planned_with(made, Silent(made, high)).troubles) == 1
    made.clock.advance(3600)
    assert made.plan().gaps == []
    assert made.is_exact()
    made, [shard] = scene()
    low, high = made.kinesis.split(shard)
    made.clock.advance(DAY + 1)
    made.put(4, low)
    made.put(4, high)
    planned_with(made, Silent(made, high))
    made.clock.advance(DAY)
    assert LogGap(STREAM, high, 0, 35) in made.plan().gaps


def test_a_sweep_leaves_objects_that_may_still_get_a_link() -> None:
    """However old they are: their planner may be held up, and link them once it goes on."""
    made, _ = scene()
    made.put(3)
    made.plan()
    made.put(3)
    left_by(made, lambda: any("/landed/" in uri for uri in made.left()))
    [landed] = [uri for uri in made.left() if "/landed/" in uri]
    made.clock.advance(DAY + 1)
    chains = LogChains(made.planner().state)
    [place] = chains.places(STREAM)
    assert Landing(chains, STREAM, place.log_id).sweep() == 0
    assert landed in made.left()


def test_marks_of_former_streams() -> None:
    """What a planner landed of a stream that is gone, and did not link, goes after a day, and its mark with it."""
    made, _ = scene()
    made.put(3)
    made.plan()
    made.put(3)
    left_by(made, lambda: len(made.left()) > 1)
    assert made.left()
    made.clock.advance(60)
    made.kinesis.create()
    made.plan()
    made.clock.advance(DAY + 1)
    made.plan()
    assert made.left() == []
    made.clock.advance(DAY + 1)
    assert made.plan().swept == 0


def test_a_planner_that_is_late_with_the_end_of_a_shard() -> None:
    """Another one landed records of the shard that it takes for gone: these stay, and so does the chain's end."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    made.kinesis.split(shard)
    made.kinesis.retention = timedelta(days=1)
    state = made.planner().state
    [place] = [each for each in LogChains(state).places(STREAM) if each.partition_id == shard]
    made.clock.advance(DAY + 1)
    is_met: list[int] = []

    def meet() -> None:
        if not is_met and any("/drafts/" in uri for uri in made.left()):
            is_met.append(1)
            now = made.clock.now()
            link = LandedLink(
                partition_id=place.partition_id, after="21", last="35", manifest_id="other", arrived_at=now
            )
            assert LogChains(state).chain(place).create(link).manifest_id == "other"

    plan = made.plan(Meddling(made.store, meet))
    assert is_met
    assert all(gap.partition_id != shard for gap in plan.gaps)
    assert made.links(shard)[-1].manifest_id == "other"
    made.clock.advance(DAY)
    assert LogGap(STREAM, shard, 35, 0) in made.plan().gaps


def test_a_manifest_does_not_grow_with_the_number_of_shards() -> None:
    """So many shards are read at once as fill it, and all have their turn."""
    made, _ = scene(40)
    made.put(400)
    made.object_bytes = 100
    made.plan()
    assert made.is_exact()
    assert max(len(manifest.files) for manifest in made.manifests()) <= 2 * 8


ACTIONS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 8)),
    st.tuples(st.just("split"), st.integers(0, 9)),
    st.tuples(st.just("merge"), st.integers(0, 9)),
    st.tuples(st.just("plan"), st.integers(1, 3)),
    st.tuples(st.just("die"), st.integers(0, 40)),
    st.tuples(st.just("wait"), st.sampled_from([60, 3_000, 11 * 3_600, 26 * 3_600])),
)


@example(actions=[("put", 1), ("merge", 0), ("split", 0), ("wait", 93_600)], meetings=[])
@example(
    actions=[("put", 1), ("wait", 39_600), ("put", 5), ("wait", 39_600), ("wait", 39_600), ("die", 21)], meetings=[]
)
@example(actions=[("merge", 0), ("plan", 1)], meetings=[(0, ("wait", 93_600))])
@example(
    actions=[
        *(("split", 0), ("merge", 0), ("plan", 1), ("put", 1), ("split", 1)),
        *(("wait", 93_600), ("put", 1), ("split", 2), ("plan", 1)),
    ],
    meetings=[(32, ("plan", 1))],
)
@given(st.lists(ACTIONS, max_size=14), st.lists(st.tuples(st.integers(0, 60), ACTIONS), max_size=3))
def test_any_course(actions: list[tuple[str, int]], meetings: list[tuple[int, tuple[str, int]]]) -> None:
    """Nothing is doubled; what is missing is told, unless no plan had seen the stream before; the rest is exact.

    Args:
        actions: What happens to the stream, one after the other.
        meetings: What happens meanwhile, at some step of plans.
    """
    made, _ = scene(2)
    plans = [made.plan()]
    waiting = dict(meetings)
    steps = itertools.count()
    is_met: list[int] = []

    def meet() -> None:
        action = waiting.pop(next(steps), None)
        if action is not None and not is_met:
            is_met.append(1)
            act(made, action, plans, None)
            is_met.clear()

    with events_logged("landing.gap") as logged:
        for action in actions:
            act(made, action, plans, meet)
        plans += [made.plan() for _ in range(2)]
    gaps = [LogGap.parse(str(event["gap"])) for event in logged]
    landed = Counter(made.lines())
    assert not landed or max(landed.values()) == 1
    missing = set(made.written) - landed.keys()
    told = {number for gap in gaps for number in range(gap.after + 7, gap.before or 7 * (len(made.written) + 1), 7)}
    assert [each for each in missing if 7 * (made.written.index(each) + 1) not in told] == []
    assert {gap for plan in plans for gap in plan.gaps} <= set(gaps)
    assert list(faults_of_landed(made.planner().state)) == []


def act(made: Scene, action: tuple[str, int], plans: list[LandingResult], meet: Callable[[], None] | None) -> None:
    """One action on a stream; a planner that dies does so at some step."""
    name, number = action
    shards = sorted(made.kinesis.streams[STREAM.name][1].values(), key=lambda each: each.first_hash)
    open_ids = [each.partition_id for each in shards if each.closed_at is None]
    if name == "put":
        made.put(number)
    elif name == "split":
        made.kinesis.split(open_ids[number % len(open_ids)])
    elif name == "merge" and len(open_ids) > 1:
        at = number % (len(open_ids) - 1)
        made.kinesis.merge(open_ids[at], open_ids[at + 1])
    elif name == "wait":
        made.clock.advance(number)
    elif name == "plan":
        with suppress(StoreUnavailable):  # a shard is disappeared after it was listed
            plans.append(made.plan(Meddling(made.store, meet or (lambda: None)), max_manifests=number))
    elif name == "die":
        with suppress(DiedError):
            plans.append(made.plan(Meddling(made.store, dying(number))))


def test_a_draft_that_cannot_be_read_keeps_its_objects_once_the_stream_is_gone() -> None:
    """Landed objects are all that is left of the stream: they wait, and are in a manifest once the draft is back."""
    made, _ = scene()
    made.put(3)
    left_by(made, lambda: any("/drafts/" in uri for uri in made.left()))
    [draft] = [uri for uri in made.left() if "/drafts/" in uri]
    good = made.store.read(draft)
    made.store.put(draft, b"{")
    made.clock.advance(60)
    made.kinesis.create()
    for _ in range(2):
        assert [draft in str(each) for each in made.plan().troubles] == [True]
        made.clock.advance(DAY + 1)
    made.store.put(draft, good)
    assert made.plan().troubles == []
    assert sorted(made.lines()) == sorted(made.written)


def test_leftovers_that_cannot_be_swept_hold_up_no_record() -> None:
    """What a former stream left waits for an operator; what comes in does not."""
    made, _ = scene()
    made.put(3)
    made.plan()
    made.put(3)
    left_by(made, lambda: len(made.left()) > 1)
    links = [info.uri for info in made.store.list("s3://lake/s/logs/kinesis/") if "/links/" in info.uri]
    made.store.put(links[-1], b"{")
    made.clock.advance(60)
    made.kinesis.create()
    made.clock.advance(DAY + 1)
    made.put(2)
    plan = made.plan()
    assert (plan.lines, [links[-1] in str(each) for each in plan.troubles]) == (2, [True])


@pytest.mark.parametrize("record", ["origin.json", "seen.json", "links"])
def test_a_damaged_record_of_one_shard_holds_up_no_other(record: str) -> None:
    """It is told, unless it is a mere note, without which the shard is read as well; its age grows, if it waits."""
    made, (damaged, other) = scene(2)
    if record != "origin.json":
        made.put(3, damaged)
    made.put(3, other)
    made.plan()
    made.plan()
    uris = [
        info.uri for info in made.store.list("s3://lake/s/logs/kinesis/") if damaged in info.uri and record in info.uri
    ]
    good = made.store.read(uris[-1])
    made.store.put(uris[-1], b"{")
    made.put(3, other)
    made.clock.advance(60)
    plan, is_note = made.plan(), record == "seen.json"
    assert (plan.lines, plan.has_read) == (3, True)
    assert [uris[-1] in str(each) for each in plan.troubles] == ([] if is_note else [True])
    assert (plan.behind_seconds or 0) >= (0 if is_note else 60)
    made.store.put(uris[-1], good)
    made.put(3, damaged)
    assert (made.plan().lines, made.gaps()) == (3, [])


def test_the_children_of_a_shard_with_a_damaged_record_wait() -> None:
    """Also once the stream lists it no more: what it had may still be landed."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    made.kinesis.split(shard)
    made.put(4)
    [link] = [info.uri for info in made.store.list("s3://lake/s/logs/kinesis/") if "/links/" in info.uri]
    good = made.store.read(link)
    made.store.put(link, b"{")
    plan = made.plan()
    assert (plan.lines, plan.waiting, len(plan.troubles)) == (0, 2, 1)
    made.store.put(link, good)
    assert made.plan().lines == 6
    assert made.plan().waiting == 0


def test_the_end_of_a_shard_in_an_answer_of_its_own() -> None:
    """The last records of a closed shard come first, at the tip: its end is asked for, and its children are landed."""
    made, [shard] = scene()
    made.kinesis.tells_end_apart = True
    made.put(2)
    made.plan()
    made.kinesis.split(shard)
    made.put(5)
    plan = made.plan()
    assert (plan.lines, plan.waiting, plan.closed, plan.has_more) == (5, 0, 1, False)
    assert sorted(made.lines()) == sorted(made.written)


def test_a_closed_shard_that_never_ends_is_asked_again_later() -> None:
    """A plan does not ask for ever."""
    made, [shard] = scene()
    made.put(2)
    made.kinesis.split(shard)
    made.kinesis.streams[STREAM.name][1][shard].closed_at = None
    listed = made.kinesis.list_shards
    made.kinesis.list_shards = lambda **asked: {  # type: ignore[method-assign]
        "Shards": [
            {**each, "SequenceNumberRange": {"StartingSequenceNumber": "1", "EndingSequenceNumber": "9"}}
            for each in listed(**asked)["Shards"]
        ]
    }
    plan = made.plan()
    assert (plan.lines, plan.waiting) == (2, 2)
    assert made.kinesis.called.count("GetRecords") < 20
