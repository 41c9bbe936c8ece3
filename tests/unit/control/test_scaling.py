"""The number of shards follows the age of the backlog, between two bounds, without a stop of those that stay."""

from datetime import timedelta
from typing import Any

import pytest

from compactor.control.decisions import ActionKind
from compactor.control.plane import Check, ControlPlane
from compactor.control.scaling import GROW_SECONDS, SHRINK_SECONDS, ShardCount, next_count
from compactor.control.snapshot import JobState
from compactor.core.documents.records import RunHeartbeat
from compactor.ledger.backlog import WaitingManifests
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring.app import App
from compactor.wiring.control import control_plane, scaling
from tests.support.ecs_stand_in import CLUSTER, FAMILY
from tests.support.memory_glue import MemoryGlue, MemoryNotifier
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore

SLA = 900.0
QUICK, LONG = GROW_SECONDS, SHRINK_SECONDS


@pytest.mark.parametrize(
    ("shards", "steady", "oldest", "wanted"),
    [
        (1, QUICK, SLA / 2, 2),
        (2, QUICK, SLA * 10, 4),
        (3, QUICK, SLA / 2, 4),
        (4, QUICK, SLA * 10, 4),
        (1, QUICK - 1, SLA * 10, 1),
        (2, LONG, SLA / 2 - 1, 2),
        (2, LONG, SLA / 8, 2),
        (4, LONG, SLA / 8 - 1, 3),
        (4, LONG - 1, 0, 4),
        (1, LONG, 0, 1),
    ],
)
def test_the_rule(shards: int, steady: float, oldest: float, wanted: int) -> None:
    """Doubled at half the SLA, one fewer below an eighth, never beyond the bounds or before the last change worked."""
    now = ManualClock().now()
    count = ShardCount(shards=shards, since=now - timedelta(seconds=steady))
    found = next_count(count, WaitingManifests(9, oldest), sla_seconds=SLA, bounds=(1, 4), now=now)
    assert found.shards == wanted
    assert found.since == (count.since if wanted == shards else now)


class Scene:
    """A job on ECS with one to four shards, whose runs are in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        paths = {place: f"s3://lake/{place}" for place in ("manifests", "output", "state")}
        ecs = {
            "cluster": CLUSTER,
            "task_definition": FAMILY,
            "subnets": ["s"],
            "security_groups": ["g"],
            "max_shards": 4,
        }
        document: dict[str, Any] = {
            "paths": paths,
            "input": {"allowed_prefixes": ["s3://lake/raw"]},
            "convert": {"engine": "native"},
            "control": {"job_name": "job", "sla_seconds": SLA},
            "ecs": ecs,
        }
        self.settings = parse_settings(document)
        self.app = App(self.settings, store=self.store, clock=self.clock)
        self.runs: dict[str, MemoryGlue] = {}
        self.stopped: list[str] = []

    def plane(self, settings: Settings) -> ControlPlane:
        job = self.runs.setdefault(settings.run_name, MemoryGlue(self.clock))
        ports: dict[str, Any] = {"clock": self.clock, "store": self.store, "metrics": MemoryMetrics()}
        return control_plane(settings, job=job, notifier=MemoryNotifier(), **ports)

    def minutes(self, number: int) -> int:
        """Check once a minute, as the function does; returns how many shards run then."""
        for _ in range(number):
            self.clock.advance(60)
            self.beat()
            count = scaling(self.app).count()
            checks = {each.run_name: self.plane(each).check() for each in self.settings.scaled_to(count.shards)}
            self.end_what_was_asked(checks)
            scaling(self.app).follow(count, checks["job"].snapshot.whole_backlog)
        return len(self.living())

    def living(self) -> list[str]:
        return sorted(name for name, job in self.runs.items() if job.living())

    def beat(self) -> None:
        for name in self.living():
            number = name.rpartition("-")[2] if "shard" in name else "1"
            now = self.clock.now()
            beat = RunHeartbeat(
                run_id=f"r{number}", host="h", process_id=1, started_at=now, heartbeat_at=now, shard=f"{number}/4"
            )
            self.store.put(self.app.layout.run(beat.run_id), beat.to_json())

    def end_what_was_asked(self, checks: dict[str, Check]) -> None:
        for name, check in checks.items():
            for action in check.actions:
                if action.kind is ActionKind.ASK_TO_STOP:
                    self.stopped.append(name)
                    self.store.delete([self.app.layout.run(each) for each in action.targets])
                    self.store.delete([self.app.layout.stop_request(each) for each in action.targets])
                    for run in self.runs[name].living():
                        self.runs[name].end(run.run_id, JobState.SUCCEEDED)

    def deliver(self, number: int) -> None:
        for each in range(number):
            self.store.put(f"s3://lake/manifests/m-{each}.json", b"{}")

    def take_all(self) -> None:
        self.store.delete([info.uri for info in list(self.store.list("s3://lake/manifests/"))])


def test_one_becomes_four_and_four_become_one() -> None:
    """Only the shards that are no longer wanted are asked to stop, the last ones first, and none is started again."""
    scene = Scene()
    assert scene.minutes(5) == 1
    scene.deliver(40)
    assert scene.minutes(14) == 2
    assert scene.minutes(14) == 4
    assert scene.stopped == []
    scene.take_all()
    assert scene.minutes(65) == 3
    assert scene.minutes(180) == 1
    assert scene.stopped == ["job-shard-4", "job-shard-3", "job-shard-2"]
    assert scaling(scene.app).count().shards == 1


def test_each_manifest_has_one_home_among_those_that_run() -> None:
    """Shards that are drained count none as their own, so none of them is late twice."""
    scene = Scene()
    names = [f"m-{number}" for number in range(40)]
    for shards in (1, 2, 3, 4):
        homes = [
            [each.shard.is_home_of(name) for each in scene.settings.scaled_to(shards) if each.shard] for name in names
        ]
        assert all(len(each) == 4 and sum(each) == 1 and not any(each[shards:]) for each in homes)


def test_a_fixed_number() -> None:
    """Without a greater limit, nothing is read or written for it."""
    scene = Scene()
    ecs = scene.settings.ecs.model_copy(update={"max_shards": 1})
    settings = parse_settings({**_document(scene.settings), "ecs": ecs.model_dump()})
    app = App(settings, store=scene.store, clock=scene.clock)
    count = scaling(app).count()
    assert (count.shards, settings.scaled_to(1)) == (1, (settings,))
    scaling(app).follow(count, WaitingManifests(9, 9 * SLA))
    assert scene.store.stat(app.layout.shard_count) is None


def _document(settings: Settings) -> dict[str, Any]:
    sections = ("paths", "input", "convert", "control")
    return {name: getattr(settings, name).model_dump(exclude_unset=True) for name in sections}
