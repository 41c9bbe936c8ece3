"""Several jobs over one prefix: each takes its share, and that of shards that are gone, and nothing is done twice."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.records import LIFE_SECONDS, RunHeartbeat
from compactor.core.errors import AccessError
from compactor.core.layout import Layout, base_name
from compactor.core.ports import ObjectStore, ProcessName
from compactor.core.rules.sharding import Shard, taker
from compactor.job.results import Ending
from compactor.job.road import LEFT_SECONDS
from compactor.job.service import Service
from compactor.job.shards import JOIN_SECONDS, REFRESH_SECONDS, ShardShare
from compactor.ledger.heartbeat import HEARTBEAT_INTERVAL_SECONDS, Runs
from compactor.wiring import streaming
from tests.support.fakes import FaultyStore, ListSource
from tests.support.harness import GOOD, DiedError, Harness, dying_at
from tests.support.memory_store import ManualClock, MemoryStore

LAYOUT = Layout(manifests="/w/manifests", output="/w/output", state="/w/state")
NAMES = [f"2026-01-02-{number:04}" for number in range(60)]


class Elsewhere:
    """Processes of other machines: only their heartbeats tell whether they live."""

    def this(self) -> ProcessName:
        return ProcessName("here", 1)

    def is_gone(self, process: ProcessName) -> bool:  # noqa: ARG002 - of the port
        return False


@dataclass
class Side:
    """Jobs side by side, as their heartbeats tell of them."""

    clock: ManualClock = field(default_factory=ManualClock)
    shares: dict[str, ShardShare] = field(default_factory=dict)
    began: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)

    def start(self, shard: str, run_id: str = "", *, store: ObjectStore | None = None) -> ShardShare:
        """Start the job of a shard."""
        run_id = run_id or f"run-{shard.replace('/', '-')}"
        runs = Runs(store or self.store, LAYOUT, self.clock, Elsewhere())
        made = ShardShare(
            shard=Shard.parse(shard), run_id=run_id, runs=runs, monotonic=lambda: self.clock.now().timestamp()
        )
        self.shares[run_id], self.began[run_id] = made, self.clock.now()
        self.beat(run_id, shard)
        made.has_joined()
        return made

    def beat(self, run_id: str, shard: str, *, is_stopping: bool = False) -> None:
        beat = RunHeartbeat(
            run_id=run_id,
            host="there",
            process_id=1,
            started_at=self.began.setdefault(run_id, self.clock.now()),
            heartbeat_at=self.clock.now(),
            is_stopping=is_stopping,
            shard=shard,
        )
        self.store.put(LAYOUT.run(run_id), beat.model_dump_json().encode())

    def end(self, run_id: str) -> None:
        """End a job in order, which deletes its heartbeat."""
        self.store.delete([LAYOUT.run(run_id)])

    def pass_seconds(self, seconds: float, beating: Collection[str] | None = None) -> None:
        """Let time pass; jobs look and send heartbeats meanwhile, unless only some of them still do."""
        for _ in range(round(seconds / REFRESH_SECONDS)):
            self.clock.advance(REFRESH_SECONDS)
            for run_id, share in self.shares.items():
                if beating is None or run_id in beating:
                    self.beat(run_id, str(share.shard))
                    share.has_joined()

    def takers(self, name: str, among: Iterable[str] | None = None) -> list[str]:
        """The runs that would take a manifest."""
        chosen = self.shares if among is None else {run_id: self.shares[run_id] for run_id in among}
        return [run_id for run_id, share in chosen.items() if share.is_mine(f"/w/manifests/{name}.json")]


def test_shards_share_what_is_there() -> None:
    """Each manifest has one taker, and each job some of them; nothing is taken before all know of each other."""
    side = Side()
    for number in range(1, 5):
        side.start(f"{number}/4")
    assert [side.takers(name) for name in NAMES[:8]] == [[]] * 8
    side.pass_seconds(JOIN_SECONDS)
    taken = {name: side.takers(name) for name in NAMES}
    assert all(len(runs) == 1 for runs in taken.values())
    assert {run for runs in taken.values() for run in runs} == side.shares.keys()


def test_a_shard_that_was_not_seen_yet_is_waited_for() -> None:
    """Jobs do not start at once; what has no job for as long as a heartbeat lives is taken over."""
    side = Side()
    first = side.start("1/2")
    side.pass_seconds(LIFE_SECONDS - REFRESH_SECONDS)
    of_second = next(name for name in NAMES if taker(name, (1, 2)) == 2)
    assert not first.is_mine(f"{of_second}.json")
    side.pass_seconds(REFRESH_SECONDS)
    assert first.is_mine(f"{of_second}.json")


@pytest.mark.parametrize("how", ["silent", "ended", "stopping"])
def test_the_first_shard_that_has_a_job_leads(how: str) -> None:
    """It commits to the table for all; the next one follows it, and leaves that to it again when it is back."""
    side = Side()
    first, second = side.start("1/2"), side.start("2/2")
    assert not first.leads()
    side.pass_seconds(JOIN_SECONDS)
    assert (first.leads(), second.leads()) == (True, False)
    if how == "ended":
        side.end("run-1-2")
    elif how == "stopping":
        side.beat("run-1-2", "1/2", is_stopping=True)
    side.pass_seconds(LIFE_SECONDS + REFRESH_SECONDS, beating={"run-2-2"})
    assert second.leads()
    again = side.start("1/2", "again")
    side.pass_seconds(JOIN_SECONDS, beating={"run-2-2", "again"})
    assert (again.leads(), second.leads()) == (True, False)


@pytest.mark.parametrize("how", ["silent", "ended", "stopping"])
def test_a_shard_that_is_gone_is_taken_over_within_a_minute(how: str) -> None:
    """By the store's clock; at once if it ended or was asked to. Only its own manifests move, and back again."""
    side = Side()
    for number in range(1, 4):
        side.start(f"{number}/3")
    side.pass_seconds(JOIN_SECONDS)
    before = {name: side.takers(name) for name in NAMES}
    assert side.shares["run-1-3"].has_changed()
    assert not side.shares["run-1-3"].has_changed()
    others = ["run-1-3", "run-2-3"]
    if how == "ended":
        side.end("run-3-3")
    elif how == "stopping":
        side.beat("run-3-3", "3/3", is_stopping=True)
    seconds = LIFE_SECONDS + REFRESH_SECONDS if how == "silent" else REFRESH_SECONDS
    side.pass_seconds(seconds, beating=others)
    assert seconds + HEARTBEAT_INTERVAL_SECONDS <= 60
    after = {name: side.takers(name, others) for name in NAMES}
    assert all(len(runs) == 1 for runs in after.values())
    assert all(after[name] == runs for name, runs in before.items() if runs != ["run-3-3"])
    assert side.shares["run-1-3"].has_changed()
    side.end("run-3-3")
    del side.shares["run-3-3"]
    side.start("3/3", "again")
    side.pass_seconds(JOIN_SECONDS)
    back = {name: side.takers(name) for name in NAMES}
    assert back == {name: ["again"] if runs == ["run-3-3"] else runs for name, runs in before.items()}


def test_a_change_that_was_taken_back_counts() -> None:
    """A shard came and went while a job was busy: what the stream showed it meanwhile was left to that one."""
    side = Side()
    first = side.start("1/2")
    side.start("2/2")
    side.pass_seconds(JOIN_SECONDS)
    of_third = next(name for name in NAMES if taker(name, (1, 2)) == 1 and taker(name, (1, 2, 3)) == 3)
    assert first.has_changed()
    side.start("3/3")
    side.pass_seconds(REFRESH_SECONDS)
    assert not first.is_mine(f"{of_third}.json")
    side.end("run-3-3")
    del side.shares["run-3-3"]
    side.pass_seconds(REFRESH_SECONDS)
    assert first.is_mine(f"{of_third}.json")
    assert first.has_changed()


def test_a_job_that_wakes_takes_nothing_until_it_is_known_again() -> None:
    """Its share has other takers, as its own heartbeat tells it."""
    side = Side()
    first, second = side.start("1/2"), side.start("2/2")
    side.pass_seconds(JOIN_SECONDS)
    side.pass_seconds(LIFE_SECONDS + REFRESH_SECONDS, beating=["run-1-2"])  # the second is paused
    assert all(first.is_mine(f"{name}.json") for name in NAMES)
    assert not any(second.is_mine(f"{name}.json") for name in NAMES)
    side.pass_seconds(REFRESH_SECONDS)
    assert not any(second.is_mine(f"{name}.json") for name in NAMES)
    side.pass_seconds(JOIN_SECONDS)
    assert all(len(side.takers(name)) == 1 for name in NAMES)
    assert any(second.is_mine(f"{name}.json") for name in NAMES)


def test_of_two_jobs_of_one_shard_the_later_one_takes_all() -> None:
    """While their number changes, the second of two and the second of four may both be there."""
    side = Side()
    side.start("1/2")
    old = side.start("2/2", "old")
    side.pass_seconds(JOIN_SECONDS)
    side.start("2/4", "new")
    side.pass_seconds(LIFE_SECONDS)
    assert all(len(side.takers(name)) == 1 for name in NAMES)
    assert not any(old.is_mine(f"{name}.json") for name in NAMES)


def test_a_job_without_a_shard_takes_all() -> None:
    """So shards wait until it ends: an upgrade to several jobs does nothing twice."""
    side = Side()
    side.start("1/2")
    side.start("2/2")
    side.beat("whole", "")
    side.pass_seconds(JOIN_SECONDS)
    assert [side.takers(name) for name in NAMES] == [[]] * len(NAMES)
    side.end("whole")
    side.pass_seconds(REFRESH_SECONDS)
    assert all(len(side.takers(name)) == 1 for name in NAMES)


def test_heartbeats_that_cannot_be_read() -> None:
    """At the start that is an error of the job; later what was known before holds on."""
    side = Side()
    faulty = FaultyStore(side.store)
    share = side.start("1/1", store=faulty)
    side.pass_seconds(JOIN_SECONDS)
    faulty.deny(LAYOUT.run("run-1-1"))
    side.pass_seconds(LIFE_SECONDS)
    assert share.is_mine("m.json")
    with pytest.raises(AccessError):
        ShardShare(shard=Shard(1, 1), run_id="x", runs=share.runs).is_mine("m.json")


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["start", "end", "silence", "wait"]), st.integers(1, 4), st.integers(1, 4))))
def test_whatever_comes_and_goes_each_manifest_has_one_taker(steps: list[tuple[str, int, int]]) -> None:
    """Once all living jobs have looked, for any history of starts, ends and silences."""
    side = Side()
    silent: set[str] = set()
    for at, (step, number, of) in enumerate([*steps, ("start", 1, 1)]):
        if step == "start" and number <= of:
            side.start(f"{number}/{of}", f"run-{at:03}")
        elif step == "wait":
            side.pass_seconds(5.0 * number, beating=side.shares.keys() - silent)
        elif side.shares:
            run_id = sorted(side.shares)[number % len(side.shares)]
            if step == "end":
                side.end(run_id)
                del side.shares[run_id]
            else:
                silent.add(run_id)
        side.clock.advance(0.001)
    living = side.shares.keys() - silent
    side.pass_seconds(LIFE_SECONDS + JOIN_SECONDS, beating=living)
    assert all(len(side.takers(name, living)) == 1 for name in NAMES[:12])


@dataclass
class SomeShare:
    """A share as a test wants it."""

    mine: set[str]
    is_whole: bool = False
    is_joined: bool = True
    changes: int = 0
    alive: set[str] = field(default_factory=set)

    def is_mine(self, uri: str) -> bool:
        return base_name(uri).removesuffix(".json") in self.mine

    def has_joined(self) -> bool:
        return self.is_joined

    def has_changed(self) -> bool:
        self.changes, changed = 0, bool(self.changes)
        return changed

    def leads(self) -> bool:
        return True

    def is_living(self, run_id: str) -> bool:
        return run_id in self.alive


def service_with(harness: Harness, share: SomeShare, source: Any = None) -> Service:
    app = harness.app()
    vars(app)["share"] = share
    return streaming.service_on(
        app, harness.engine(), source or ListedManifests(harness.store, harness.layout.manifests_folder)
    )


def test_a_job_works_on_its_own_share_only() -> None:
    """What is delivered, left open or unseen by the stream: all of it only if it is of this job."""
    harness = Harness()
    for name in ("a", "b", "_hidden"):
        harness.deliver(name, GOOD)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.ATTEMPTED)).run([harness.deliver("open", GOOD)])
    report = service_with(harness, SomeShare({"a"})).run(once=True)
    assert (report.committed, report.dead_lettered) == (1, 0)
    assert len(harness.waiting()) == 3
    report = service_with(harness, SomeShare({"b", "open", "_hidden"})).run(once=True)
    assert (report.committed, report.dead_lettered) == (2, 1)


def test_the_stream_shows_a_job_what_is_of_others() -> None:
    """It is not even read: only its own shard takes it in."""
    harness = Harness()
    store = FaultyStore(harness.store)
    uris = [harness.deliver(name, GOOD) for name in ("a", "b")]
    store.deny(uris[1])
    app = harness.app(store=store)
    vars(app)["share"] = SomeShare({"a"})
    report = streaming.service_on(
        app, harness.engine(store), ListedManifests(store, harness.layout.manifests_folder)
    ).run(once=True)
    assert (report.committed, report.stuck) == (1, {})


def test_what_is_taken_over_is_begun_at_once() -> None:
    """The stream has shown it before, and does not show it again."""
    harness = Harness()
    for name in ("a", "b"):
        harness.deliver(name, GOOD)
    share = SomeShare({"a"})

    def on_wait() -> None:
        if not harness.waiting():
            job.stop()
        elif len(harness.waiting()) == 1 and not share.mine >= {"b"}:
            share.mine.add("b")
            share.changes += 1

    job = service_with(harness, share, ListSource(harness.store, harness.layout.manifests_folder, on_wait=on_wait))
    assert job.run(once=False).committed == 2
    harness.check_exact()


def test_what_another_shard_has_taken_meanwhile_is_left_to_it() -> None:
    """It waited for its turn here while its shard came back."""
    harness = Harness()
    uri = harness.deliver("a", GOOD)
    share = SomeShare(set())
    app = harness.app()
    vars(app)["share"] = share
    batch = streaming.scheduler(app, harness.engine()).run([uri])
    assert (batch.finished, batch.failures) == ([], {})
    assert [*harness.ledger.open_ids()] == []


@pytest.mark.parametrize(
    ("age_seconds", "lives", "is_left"),
    [
        (1.0, True, True),
        (1.0, False, False),  # it is dead
        (LEFT_SECONDS - 1, True, True),
        (LEFT_SECONDS, True, False),  # it lost track: the record was written, and the answer was lost
        (-LEFT_SECONDS, True, False),  # of a clock that was ahead
    ],
)
def test_what_a_living_run_works_on_is_left_to_it(age_seconds: float, *, lives: bool, is_left: bool) -> None:
    """A second attempt beside it would be for nothing."""
    harness = Harness()
    uri = harness.deliver("a", GOOD)
    first = harness.app(on_crash_point=dying_at(CrashPoint.ATTEMPTED))
    with pytest.raises(DiedError):
        streaming.scheduler(first, harness.engine()).run([uri])
    harness.clock.advance(age_seconds)
    app = harness.app()
    vars(app)["share"] = SomeShare({"a"}, alive={first.run_id} if lives else set())
    expected = Ending.ELSEWHERE if is_left else Ending.COMMITTED
    assert [each.ending for each in streaming.scheduler(app, harness.engine()).run([uri]).all] == [expected]
    harness.runner().run([uri])
    harness.check_exact()


def test_an_attempt_that_another_run_forestalled_counts_as_wasted() -> None:
    """A job that was paused amid an attempt wakes after its manifest was taken over: no row twice."""
    harness = Harness()
    uri = harness.deliver("a", GOOD)
    woken = streaming.scheduler(harness.app(on_crash_point=taken_over_at(harness, uri)), harness.engine())
    batch = woken.run([uri])
    assert [result.wasted for result in batch.finished] == [True]
    harness.check_exact()
    report = harness.run_once()
    assert report.committed == 0


def taken_over_at(harness: Harness, uri: str) -> Any:
    """Lets another run do everything between the attempt of this one and its decision."""
    done: list[str] = []

    def on_crash_point(step: CrashPoint, _manifest_id: str) -> None:
        if step is CrashPoint.ATTEMPTED and not done:
            done.append(uri)
            harness.clock.advance(timedelta(seconds=90).total_seconds())
            harness.runner().run([uri])

    return on_crash_point
