"""The world around the simulated code: producers, S3, its events, Lambda, Glue, operators, and their troubles."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from compactor.control.snapshot import JobState
from compactor.core.documents.records import FileStatus
from compactor.core.errors import CompactorError
from compactor.core.layout import is_delivery
from compactor.core.logs.names import is_log
from compactor.ledger.landing.chains import LogChains
from compactor.ops.verify.report import VerifyResult
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App
from tests.simulation.code_processes import Code, Glue, NoMetrics, ProcessClock, WorldClock
from tests.simulation.faults import Faults
from tests.simulation.oracle import Oracle, Produced
from tests.simulation.scheduler import START, Broken, Process, Scheduler, Stalled
from tests.simulation.store import Line, ProcessClaims, ProcessStore, WorldStore
from tests.simulation.topics import (
    PACE_SECONDS,
    TOPIC,
    TROUBLE_SECONDS,
    ProcessKafka,
    SimulatedTopic,
    TopicOracle,
    is_landed,
)
from tests.support.memory_glue import MemoryGlue
from tests.support.memory_store import MemoryClaims
from tests.support.s3_messages import notification

BUCKET, ROOT = "lake", "s3://lake"
DAY_SECONDS = 86_400.0
BUILDER_TIMEOUT, SEALER_TIMEOUT, CHECK_TIMEOUT = 120.0, 240.0, 120.0  # those of the deployment
VISIBILITY_SECONDS = (900.0, 60.0)  # a queue may deliver a message again before that is over
LEASE_SECONDS = (300, 60)
PACES = (60.0, 150.0, 400.0)
"""Mean seconds between two files; more in a long run."""

MAX_RECEIVES = 10
OPERATOR_SECONDS = 1200.0
DAMAGE_SECONDS = (7200.0, 900.0)
"""Mean seconds between two files of rows that a person deletes: the second if the run is harsh."""

SECONDS_OF = {
    "close": 400.0,
    "expire": 200.0,
    "topic": 150.0,
}  # of the first two, there is nothing to do most of the time, for a date has to be quiet
COMMAND_TRIES = 5
QUIET_SECONDS = 12 * 3600.0
"""After the last fault, everything has to be done within this time."""
"""How long all may take that is left to do once nothing goes wrong any more."""

CLOSE_AFTER_SECONDS = 120.0
"""How long a date must be quiet to be closed, in a run of less than a day."""

AGES = ((2, 1), (0.003, 0.0), (0.003, 0.003))
"""Days until `compactor data clean` deletes archived manifests and rejects; 0: never. A long run has the first ones."""

EXPIRING = 0.7
"""The share of the runs in which dates are closed in which they expire as well."""

WITH_TOPIC = 0.4
"""The share of the runs with a topic."""

SHARDS = (1, 1, 2)

BUDGETS = (None, None, 0, 500)
"""Decoded bytes after which a manifest leaves its further files to the next one; None: it reads all of them."""

SETTINGS: dict[str, Any] = {
    "paths": {place: f"{ROOT}/{place}" for place in ("manifests", "output", "state")},
    # Of a whole cluster, so that `compactor plan` alone lands the topic, when the operator calls it.
    "input": {"allowed_prefixes": [f"{ROOT}/raw", "kafka://main"]},
    "kafka": {"clusters": {TOPIC.source: {"bootstrap.servers": "none:1"}}},
    "stream": {"trigger_interval_seconds": 15, "manifests_in_flight": 3},
    "builder": {"target_manifest_bytes": 1500},
    "retention": {"archive_days": 2, "rejects_days": 1, "close_after_days": 1},
}


@dataclass(slots=True)
class Message:
    """One message of the queue."""

    body: str
    visible_at: float
    receives: int = 0


@dataclass
class World:
    """One run of the simulation.

    Attributes:
        days: How long producers produce and troubles happen.
        until_fault: Only so many faults happen.
        is_harsh: Whether all kinds of faults happen, and often.
        trace: Gets what happens; None to keep nothing.
        say: Prints a line for each simulated day.
    """

    seed: int
    days: float
    until_fault: int | None = None
    is_harsh: bool = False
    trace: list[str] | None = None
    say: Callable[[str], None] = lambda _: None
    messages: dict[str, Message] = field(default_factory=dict)
    denied: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    kept: set[str] = field(default_factory=set)  # input that a rebuild needs
    forgotten: set[str] = field(default_factory=set)  # ids of manifests of which the engine lost a row
    is_over: bool = False
    rest_seconds: float = 0.0
    is_judged: bool = False
    _numbers: Counter[str] = field(default_factory=Counter)
    _drivers: dict[tuple[int, str], Process] = field(default_factory=dict)
    _awaited: int = 0
    _nothing_until: float = 0.0  # no input may be read

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.seed)
        self.faults = Faults.of(
            self.scheduler.chance("faults"), self.until_fault, is_harsh=self.is_harsh, is_long=self.days >= 1
        )
        self.chance = self.scheduler.chance("world")
        self.clock = WorldClock(self.scheduler)
        self.visibility_seconds = self.chance.choice(VISIBILITY_SECONDS[self.is_harsh :])
        self.rush = max(1.0, self.days)  # over a long time operators act less often
        self.plans = self.chance.choice((True, False))  # without `plan` every file has to come by its event
        self.forgetful = self.chance.choice((0.0, 0.02))
        self.loses_runs = self.chance.choice((0.004,) if self.is_harsh else (0.0, 0.004))
        lease = self.chance.choice(LEASE_SECONDS[self.is_harsh :])
        shards = {"control": {"shards": self.chance.choice(SHARDS)}}
        self.settings = replace(parse_settings(SETTINGS | shards), claim_lease_seconds=lease)
        self.layout = self.settings.layout()
        self.store = WorldStore(self.clock, self._watch)
        self.oracle = Oracle(self.layout, self._read, self.forgotten)
        self.claims = MemoryClaims()
        self.glues = [MemoryGlue(self.clock, starting_seconds=30) for _ in self.settings.by_shard]  # a job each
        self.services = Process("world")
        close_after = timedelta(seconds=CLOSE_AFTER_SECONDS) if self.days < 1 else timedelta(days=1)
        expires = self.scheduler.chance("expiry")
        ages = expires.choice(AGES) if self.days < 1 else AGES[0]
        budget = self.scheduler.chance("budget").choice(BUDGETS)
        self.code = Code(self.settings, close_after, self._given, self._forgets, *ages, budget)
        code = self.code
        self._operator = {"redrive": code.redrive, "rebuild": code.rebuild, "clean": code.clean}
        self._operator["breaker"] = lambda process: code.close_breaker(process, self._glues_of(process))
        if self.chance.random() < 0.5 or self.is_harsh:
            self._operator["close"] = code.close
        if self.plans:
            self._operator["plan"] = self._plan
        self._operator["verify"] = self._verify
        if "close" in self._operator and expires.random() < EXPIRING:
            self._operator["expire"] = self._expire
        topic = self.scheduler.chance("topic")
        self.topic = SimulatedTopic(topic) if topic.random() < WITH_TOPIC else None
        if self.topic is not None:
            self._operator["topic"] = lambda process: code.plan_topic(process, topic.choice((1, 2, 100)))
        self.outages = self.chance.random() < 0.5
        skew = self.chance.choice((0.0, 0.0, 1.5, 30.0))
        self._skew = lambda: self.chance.uniform(-skew, skew)

    def run(self) -> None:
        """Live through the days, let everything come to rest, and see that nothing is lost or doubled.

        Raises:
            Broken: Something happened that must never happen.
        """
        self.scheduler.run(self.services, self._live)

    def _live(self) -> None:
        self.scheduler.processes["world"] = self.services
        self._serve(self._produce, "producer")
        self._serve(self._receive, "queue")
        self._serve(self._drive, "glue")
        pace = 60.0 if self.days < 1 else 300.0  # over days, most of all steps would be these
        self._every(pace, lambda: self._start("sealer", self.code.seal, SEALER_TIMEOUT), "sealer")
        self._every(pace, lambda: self._start("check", self._check, CHECK_TIMEOUT), "control plane")
        for name, work in self._operator.items():
            self._every(
                self.rush * SECONDS_OF.get(name, OPERATOR_SECONDS), partial(self._operate, name, work), "operator"
            )
        self._serve(self._damage, "damage")
        if self.outages:
            self._serve(self._deny, "outages")
        if self.topic is not None:
            self._serve(partial(self._of_topic, self.topic, PACE_SECONDS, self.topic.produce), "topic")
            self._serve(partial(self._of_topic, self.topic, TROUBLE_SECONDS, self._suffer), "brokers")
            second = partial(self._operate, "topic", self._operator["topic"])  # two planners at once
            self._every(self.rush * SECONDS_OF["topic"], second, "operator")
        whole, rest = divmod(self.days, 1.0)
        for day in range(int(whole)):
            self._pass(DAY_SECONDS)
            self.say(f"day {day + 1}: {self.described()}")
        self._pass(rest * DAY_SECONDS)
        self.is_over = self.faults.is_over = True
        self.denied.clear()
        self._nothing_until = 0.0
        if self.topic is not None:
            self.topic.down_until = 0.0
        for process in self.scheduler.processes.values():
            process.paused_until = 0.0
        self._settle()
        self._judge()

    def _pass(self, seconds: float) -> None:
        self.scheduler.pause(seconds)

    def described(self) -> str:
        """What has happened so far, and since when."""
        shown = self.counts + self.oracle.counts + (self.topic.counts if self.topic is not None else Counter())
        shown["faults"], shown["steps"] = self.faults.drawn, self.scheduler.steps
        return ", ".join(f"{name} {number}" for name, number in sorted(shown.items()))

    # What runs in the world.

    def _serve(self, work: Callable[[], None], name: str) -> None:
        self.scheduler.spawn(self.services, work, name)

    def _every(self, seconds: float, work: Callable[[], object], name: str) -> None:
        def loop() -> None:
            self.scheduler.pause(self.chance.random() * seconds)
            while True:
                work()
                self.scheduler.pause(seconds)

        self._serve(loop, name)

    def _start(
        self, kind: str, work: Callable[[Process], object], timeout: float = 3600.0, delay: float = 0.0
    ) -> Process:
        """Start a process of the code; it is killed if it takes too long."""
        self._numbers[kind] += 1
        process = Process(f"{kind}-{self._numbers[kind]}", self._skew())
        process.on_end = self._ended
        self.scheduler.start(process, lambda: work(process), delay)
        if timeout and self.chance.random() < 0.6:  # else it hangs beside what takes its place
            self._later(timeout + delay, lambda: self.scheduler.kill(process))
        return process

    def _operate(self, name: str, work: Callable[[Process], object]) -> None:
        """Run a command, and again if it failed for want of an answer; none while all is compared."""
        for _ in range(0 if self.is_judged else COMMAND_TRIES):
            process = self._start(name, work)
            while not process.is_dead:
                self.scheduler.pause(10.0)
            if process.error is None:
                return

    def _ended(self, process: Process) -> None:
        self.scheduler.processes.pop(process.name, None)
        kind = process.name.partition("-")[0]
        if process.has_died:
            self.counts["deaths"] += 1
        if process.error is not None:
            self.counts[f"{kind} failed"] += 1
            self._note(process.name, f"failed: {process.error!r}")
            if not isinstance(process.error, CompactorError):
                self.scheduler.break_off(process.error)

    def _later(self, seconds: float, work: Callable[[], object]) -> None:
        def late() -> None:
            self.scheduler.pause(seconds)
            work()

        self.scheduler.spawn(self.services, late, "later")

    def _line(self, process: Process) -> Line:
        def later(seconds: float, work: Callable[[], object]) -> None:
            self._awaited += 1

            def landed() -> None:
                self._awaited -= 1
                self._note(process.name, "a late request lands")
                work()

            self._later(seconds, landed)

        note = partial(self._note, process.name)
        is_seldom = process.name.partition("-")[0] in self._operator
        return Line(self.scheduler, process, self.faults, later, note, is_seldom)

    def _note(self, who: str, what: str, kind: str = "") -> None:
        if self.trace is not None:
            shown = what.replace(f"{ROOT}/", "")
            self.trace.append(f"{self.scheduler.moment():%d %H:%M:%S.%f} {who:12} {kind.upper():12} {shown}")

    def _watch(self, uri: str, data: bytes | None) -> None:
        try:
            self.oracle.watch(uri, data)
        except Broken as exc:
            self.scheduler.break_off(exc)
            raise

    def _read(self, uri: str) -> bytes | None:
        return self.store.read(uri) if self.store.stat(uri) is not None else None

    def _is_denied(self, uri: str) -> bool:
        until = max(self.denied.get(uri, 0.0), self._nothing_until if uri.startswith(f"{ROOT}/raw/") else 0.0)
        return until > self.scheduler.now

    # Producers and the queue.

    def _produce(self) -> None:
        chance = self.chance
        pace = chance.choice(PACES) * max(1.0, self.days / 3)
        while not self.is_over:
            self.scheduler.pause(chance.expovariate(1.0) * pace)
            if not self.is_over:
                self._put_file()

    def _of_topic(self, topic: SimulatedTopic, seconds: float, work: Callable[[], None]) -> None:
        while not self.is_over:
            self.scheduler.pause(topic.chance.expovariate(1.0) * seconds * max(1.0, self.days / 3))
            if not self.is_over:
                work()

    def _suffer(self) -> None:
        assert self.topic is not None
        self.topic.suffer(self.scheduler.now)

    def _put_file(self) -> None:
        chance = self.chance
        number = self._numbers["file"] = self._numbers["file"] + 1
        day = START + timedelta(seconds=self.scheduler.now) - timedelta(days=chance.choice((0, 0, 0, 1, 2, 3)))
        ending = chance.choice(("ndjson", "ndjson", "ndjson.gz"))
        uri = f"{ROOT}/raw/{day:%Y-%m-%d}/{number:06d}.{ending}"
        if number > 3 and chance.random() < 0.05:  # a new version of a file
            again = chance.choice([*self.oracle.produced][chance.choice((0, -2)) :])  # often of one just announced
            uri = uri if again in self.kept else again
        lines = [self._line_of_data() for _ in range(chance.randrange(1, 6))]
        data = b"\n".join(lines) + b"\n" * chance.randrange(3)
        data = gzip.compress(data, mtime=0) if uri.endswith(".gz") else data
        self.store.put(uri, data)
        info = self.store.stat(uri)
        assert info is not None
        self.counts["files"] += 1
        self.oracle.produced.setdefault(uri, []).append(Produced(uri, info.etag, data))
        if chance.random() < 0.02:
            self.denied[uri] = self.scheduler.now + chance.expovariate(1.0) * 3600
        if chance.random() < 0.97 or not self.plans:  # else its event never comes
            time = f"{info.modified_at:%Y-%m-%dT%H:%M:%S.000Z}"
            body = notification(BUCKET, uri.removeprefix(f"{ROOT}/"), info.size_bytes, info.etag, time=time)
            for _ in range(1 + (chance.random() < 0.05)):
                delay = chance.expovariate(1.0) * chance.choice((1.0, 1.0, 600.0))
                self._numbers["message"] += 1
                self.messages[f"m{self._numbers['message']}"] = Message(body, self.scheduler.now + delay)

    def _line_of_data(self) -> bytes:
        self._numbers["line"] += 1
        number = self._numbers["line"]
        if self.chance.random() < 0.08:
            return f"no json {number}".encode()
        keys = {
            "id": f"{number}",
            "amount": number,
            f"key{self.chance.randrange(12)}": "x" * self.chance.randrange(200),
        }
        return json.dumps(keys).encode()

    def _receive(self) -> None:
        """Give batches of messages to builders, several at once."""
        while True:
            self.scheduler.pause(self.chance.uniform(2.0, 25.0))
            now = self.scheduler.now
            ready = [each for each, message in self.messages.items() if message.visible_at <= now][:10]
            builders = sum(name.startswith("builder") for name in self.scheduler.processes)
            if ready and builders < 3:
                self.chance.shuffle(ready)
                for each in ready:
                    self.messages[each].visible_at = now + self.visibility_seconds
                    self.messages[each].receives += 1
                self._start("builder", lambda process, ids=tuple(ready): self._build(process, ids), BUILDER_TIMEOUT)

    def _build(self, process: Process, ids: Iterable[str]) -> None:
        bodies = {each: self.messages[each].body for each in ids if each in self.messages}
        report = self.code.build(process, bodies)
        for each in bodies:
            if each not in report.failed:
                self.messages.pop(each, None)
            elif self.plans and each in self.messages and self.messages[each].receives >= MAX_RECEIVES:
                self.messages.pop(each)  # to the dead-letter queue: `plan` finds its files
            elif each in self.messages:
                self.messages[each].visible_at = self.scheduler.now + 30.0

    # What processes of the code get.

    def _given(self, process: Process) -> dict[str, Any]:
        line = self._line(process)
        return {
            "clock": ProcessClock(self.scheduler, process),
            "store": ProcessStore(self.store, line, self._is_denied),
            "claims": ProcessClaims(self.claims, line),
            "metrics": NoMetrics(),
            **({"kafka_log": ProcessKafka(self.topic, line)} if self.topic is not None else {}),
        }

    def _forgets(self, manifest_id: str) -> bool:
        forgets = not self.is_over and self.chance.random() < self.forgetful
        if not forgets or manifest_id in self.forgotten:  # by several a good manifest would run out of attempts
            return False
        self.forgotten.add(manifest_id)
        return True

    def _check(self, process: Process) -> None:
        self.code.check(process, self._glues_of(process))

    def _glues_of(self, process: Process) -> list[Glue]:
        return [Glue(glue, self._line(process)) for glue in self.glues]

    def _plan(self, process: Process) -> None:
        self.code.plan(process, settle_seconds=self.chance.choice((0.0, 900.0)))

    def _expire(self, process: Process) -> None:
        """All dates that are closed, or the earlier ones."""
        days = self.chance.choice((-1, 0, 1, 1))
        self.code.expire(process, f"{self.scheduler.moment() + timedelta(days=days):%Y-%m-%d}")

    def _verify(self, process: Process) -> None:
        """Whatever goes on: what is not damaged is whole or expired."""
        report = self.code.verify(process, deep=False)
        lost = [each for each in report.discrepancies if each.manifest_id not in self.oracle.damaged]
        if lost:
            raise Broken(f"verify amid all: {lost[:2]}")

    def _deny(self) -> None:
        """From time to time no input may be read for a while, and manifests become dead letters."""
        while True:
            self.scheduler.pause(self.chance.expovariate(1.0) * 1800 * self.rush)
            if not self.is_over:
                self._nothing_until = self.scheduler.now + self.chance.expovariate(1.0) * 900
                self.counts["outages"] += 1

    def _damage(self) -> None:
        """From time to time a person deletes a file of rows by mistake."""
        while True:
            self.scheduler.pause(self.chance.expovariate(1.0) * DAMAGE_SECONDS[self.is_harsh] * self.rush)
            found = [] if self.is_over else self._rebuildable()
            if found:
                self.oracle.is_damaging = True
                self.store.delete(found)
                self.oracle.is_damaging = False
                self.counts["damaged files"] += 1

    def _rebuildable(self) -> list[str]:
        """Files of rows whose input is as it was. From now on that input is not replaced any more."""
        found = []
        for commits in self.oracle.commits.values():
            if any(is_landed(file.uri) for file in commits[-1].files):
                continue
            files = [file for file in commits[-1].files if file.status is FileStatus.COMPACTED]
            if all(file.etag == self.oracle.produced[file.uri][-1].etag for file in files):
                there = [each.final for each in commits[-1].outputs if self._read(each.final) is not None]
                found += [(commits[-1].manifest_id, final, files) for final in there]
        if not found:
            return []
        manifest_id, final, files = self.chance.choice(found)
        self.kept.update(file.uri for file in files)
        self.oracle.damaged.add(manifest_id)
        return [final]

    # Glue and the job.

    def _drive(self) -> None:
        """Run a driver for each run of Glue, and end the run with it, or sometimes long before it."""
        while True:
            self.scheduler.pause(5.0)
            for number, glue in enumerate(self.glues):
                self._drive_job(number, glue)

    def _drive_job(self, number: int, glue: MemoryGlue) -> None:
        living = {run.run_id: run for run in glue.living()}
        settings = self.settings.by_shard[number]
        for run_id, run in living.items():
            if run.state is JobState.RUNNING and (number, run_id) not in self._drivers:
                work = partial(self.code.work, settings=settings)
                self._drivers[number, run_id] = self._start("driver", work, timeout=0.0)
        for (of, run_id), driver in [*self._drivers.items()]:
            if of != number:
                continue
            if driver.is_dead and run_id in living:
                ended = JobState.SUCCEEDED if driver.error is None and not driver.has_died else JobState.FAILED
                glue.end(run_id, ended, "the driver ended")
            elif run_id not in living and not driver.is_dead:
                self._take_down(driver)
            if driver.is_dead:
                del self._drivers[of, run_id]
        if living and not self.is_over and self.chance.random() < self.loses_runs / self.rush:
            glue.end(next(iter(living)), JobState.FAILED, "lost")  # its driver may go on for a while

    def _take_down(self, driver: Process) -> None:
        """Glue says that this run has ended: its driver is killed now, or works on for some time."""
        if driver.name not in self._numbers:
            self._numbers[driver.name] = 1
            self._later(self.chance.choice((0.0, 300.0, 1800.0)), lambda: self.scheduler.kill(driver))

    # The end.

    def _settle(self) -> None:
        """Let everything that is left come to its end, with an operator who does what there is to do."""
        ends = self.scheduler.now + QUIET_SECONDS
        while self.scheduler.now < ends:
            self._pass(1000.0)
            for name, work in self._operator.items():
                process = self._start(name, work)
                while not process.is_dead:
                    self._pass(10.0)
            self._pass(200.0)
            if not self._left():
                self.rest_seconds = self.scheduler.now - ends + QUIET_SECONDS
                return
        raise Stalled(f"not at rest after {QUIET_SECONDS / 3600:g} hours without a fault: {self._left()[:5]}")

    def _left(self) -> list[str]:
        layout = self.layout
        folders = (layout.manifests_folder, layout.pending_folder, layout.open_folder, layout.changing_folder)
        left = [info.uri for folder in folders for info in self.store.list(folder) if is_delivery(info.uri)]
        return [*left, *self.messages, *["a late request"] * self._awaited]

    def _judge(self) -> None:
        self.is_judged = True
        while any(name.partition("-")[0] in self._operator for name in self.scheduler.processes):
            self._pass(10.0)
        places = (f"{ROOT}/output/", self.layout.rejects_folder)
        self.oracle.check_lines((info.uri for place in places for info in self.store.list(place)), self._of_chains())
        expected = self.oracle.expiry.counted()
        report, by_summaries = self._verified(deep=True), self._verified(deep=False)
        if report.discrepancies:
            raise Broken(f"verify --deep: {report.discrepancies[:3]}")
        if answer(by_summaries) != answer(report):
            raise Broken(f"verify by the summaries: {answer(by_summaries)}, by the records: {answer(report)}")
        gone: Counter[str] = Counter()
        for each in report.expired:
            gone[each.part] += each.files
        if gone not in (expected, self.oracle.expiry.counted()):  # a job may go on with what is due by its age
            raise Broken(f"verify --deep: {gone} expired, expected {expected}")
        left = [each for each in (*report.quarantined_files, *report.dead_letter_manifests) if not each.is_settled]
        left = [each for each in left if not is_log(each.uri)]  # the oracle knows that all of these are gone
        if report.unfinished or left:
            raise Broken(f"left to an operator: {report.unfinished} unfinished, {left[:2]}")

    def _of_chains(self) -> TopicOracle | None:
        """What has to come of the topic. No one plans any more."""
        if self.topic is None:
            return None
        app = App(self.settings, clock=self.clock, store=self.store, claims=self.claims, metrics=NoMetrics())
        chains = LogChains(app.state)
        places = {(each.log_id, int(each.partition_id)): each for each in chains.places(TOPIC)}
        return TopicOracle(
            self.topic,
            {key: int(chains.origin(place).after) for key, place in places.items()},
            {key: list(chains.chain(place).links()) for key, place in places.items()},
        )

    def _verified(self, *, deep: bool) -> VerifyResult:
        found: list[VerifyResult] = []
        verifier = Process(f"verifier-{deep}")
        self.scheduler.start(verifier, lambda: found.append(self.code.verify(verifier, deep=deep)))
        while not verifier.is_dead:
            self._pass(10.0)
        if verifier.error is not None:
            raise verifier.error
        return found[0]


def answer(report: VerifyResult) -> dict[str, Any]:
    """What a verification says, in any order, apart from what is settled: summaries only count it."""
    waiting = [each for each in (*report.quarantined_files, *report.dead_letter_manifests) if not each.is_settled]
    return {"sums": report.by_name, "discrepancies": report.discrepancies, "waiting": sorted(waiting, key=repr)}
