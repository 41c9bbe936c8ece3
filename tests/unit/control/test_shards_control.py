"""The control plane of several jobs that share the manifests: each is watched and restarted for itself."""

from dataclasses import replace
from typing import Any

import pytest

from compactor.adapters.aws.cloudwatch import CloudWatchMetrics
from compactor.control.decisions import ActionKind
from compactor.control.plane import Check, ControlPlane
from compactor.core.documents.records import RunHeartbeat
from compactor.core.errors import SettingsError
from compactor.core.rules.sharding import taker
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring.control import control_plane
from tests.support.memory_glue import MemoryGlue, MemoryNotifier
from tests.support.memory_store import ManualClock, MemoryMetrics, MemoryStore
from tests.support.recent_commits import recent_commit

NAMES = [f"m-{number}" for number in range(40)]
OF_SECOND = [name for name in NAMES if taker(name, (1, 2)) == 2]


def settings_of(control: dict[str, Any], **more: Any) -> Settings:
    paths = {place: f"s3://lake/{place}" for place in ("manifests", "output", "state")}
    own = {"paths": paths, "input": {"allowed_prefixes": ["s3://lake/raw"]}, "builder": {"claims": "claims"}}
    return parse_settings({**own, "control": control, **more})


class Scene:
    """Two jobs over one prefix, with their Glue jobs, notices and metrics in memory."""

    def __init__(self, **control: Any) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.settings = settings_of({"shards": 2, "job_name": "job", **control})
        shards = {each.run_name: each for each in self.settings.by_shard}
        self.glue = {name: MemoryGlue(self.clock) for name in shards}
        self.metrics = {name: MemoryMetrics() for name in (*shards, "sum")}
        self.notifier = MemoryNotifier()
        self.jobs = {name: self._plane(name, each) for name, each in shards.items()}

    def _plane(self, name: str, settings: Settings) -> ControlPlane:
        made = control_plane(
            settings,
            job=self.glue[name],
            notifier=self.notifier,
            clock=self.clock,
            store=self.store,
            metrics=self.metrics[name],
        )
        return replace(made, sum_metrics=made.sum_metrics and self.metrics["sum"])

    def check(self) -> dict[str, Check]:
        return {name: each.check() for name, each in self.jobs.items()}

    def minutes(self, number: int, *shards: str) -> dict[str, Check]:
        """Check once a minute, with heartbeats from the jobs of some shards."""
        for _ in range(number):
            self.clock.advance(60)
            for shard in shards:
                self.beat(shard)
            checked = self.check()
        return checked

    def beat(self, shard: str) -> None:
        run_id, now = f"run-{shard.replace('/', '-')}", self.clock.now()
        beat = RunHeartbeat(
            run_id=run_id, host="glue", process_id=7, started_at=now, heartbeat_at=now, shard=shard.strip("-")
        )
        self.store.put(self.settings.layout().run(run_id), beat.model_dump_json().encode())

    def deliver(self, *names: str) -> None:
        for name in names:
            self.store.put(f"s3://lake/manifests/{name}.json", b"{}")


def test_each_shard_has_a_job_that_is_kept_running() -> None:
    """The heartbeat of one says nothing of the others: a job that is silent while its share waits is replaced."""
    scene = Scene()
    assert list(scene.jobs) == ["job", "job-shard-2"]
    scene.check()
    scene.minutes(2, "1/2", "2/2")
    assert {name: each.started for name, each in scene.glue.items()} == {
        name: ["jr_000001"] for name in ("job", "job-shard-2")
    }
    scene.deliver(*NAMES)
    checked = scene.minutes(15, "1/2")
    assert all(action.kind is not ActionKind.STOP for action in checked["job"].actions)
    assert "no_heartbeat" not in checked["job"].alarms
    assert [run.state for run in scene.glue["job"].living()] == ["RUNNING"]
    assert len(scene.glue["job-shard-2"].started) > 1
    subjects = [subject for subject, _ in scene.notifier.messages]
    assert any(subject.startswith("job, shard 2/2: ") for subject in subjects)


def test_what_waits_is_counted_by_shard_and_as_a_whole() -> None:
    """The age of one share is not hidden by another, and the metrics of the deployment stay what they were."""
    scene = Scene()
    scene.deliver(*OF_SECOND)
    scene.clock.advance(100)
    checked = scene.check()
    backlogs = {name: each.snapshot.backlog for name, each in checked.items()}
    assert {name: each and each.manifests for name, each in backlogs.items()} == {
        "job": 0,
        "job-shard-2": len(OF_SECOND),
    }
    key = "OldestManifestAgeSeconds"
    ages = {name: [each[key] for each in found.emitted if key in each] for name, found in scene.metrics.items()}
    assert ages == {"job": [0.0], "job-shard-2": [100.0], "sum": [100.0]}


def test_progress_of_one_share_is_none_of_another() -> None:
    """A job that commits nothing of its share is stalled, however much others commit."""
    scene = Scene()
    scene.check()
    scene.deliver(*NAMES)
    for number in range(70):
        for name in set(NAMES) - set(OF_SECOND):
            commit = recent_commit(scene.clock.now()).model_copy(update={"manifest_id": name})
            scene.store.put(scene.settings.layout().recent(number % 64), commit.model_dump_json().encode())
            break
        checked = scene.minutes(1, "1/2", "2/2")
    assert "no_progress" not in checked["job"].alarms
    assert "no_progress" in checked["job-shard-2"].alarms


def test_a_run_without_a_shard_counts_as_the_first() -> None:
    """It was started by the job that is the first of several now, and is drained as such."""
    scene = Scene()
    scene.check()
    checked = scene.minutes(12, "-")
    living = {name: each.snapshot.heartbeats and len(each.snapshot.heartbeats.living) for name, each in checked.items()}
    assert living == {"job": 1, "job-shard-2": 0}


def test_records_of_one_job_are_none_of_another() -> None:
    """The first one goes on with those of the only job."""
    scene = Scene()
    now = scene.clock.now()
    for each in scene.jobs.values():
        each.sources.close_breaker(now)
    found = [info.uri.removeprefix("s3://lake/state/") for info in scene.store.list("s3://lake/state/control/")]
    assert found == ["control/breaker-closed-shard-2.json", "control/breaker-closed.json"]
    assert [each.sources.queue for each in scene.jobs.values()][1] is None


def test_a_check_is_of_one_job() -> None:
    """It has to be named."""
    settings = Scene().settings
    with pytest.raises(SettingsError, match="expected 1/2 to 2/2"):
        settings.require_shard()
    assert settings.of_shard("2/2").require_shard().run_name == "job-shard-2"


def dimensions_of(settings: Settings) -> list[list[str]]:
    """The sets of dimensions that the metrics of a check are sent with: the values behind job and environment."""
    found = control_plane(settings, job=MemoryGlue(ManualClock())).metrics
    assert isinstance(found, CloudWatchMetrics)
    assert all(list(each)[:2] == ["Job", "Environment"] for each in found.dimension_sets)
    return [[f"{name} {value}" for name, value in each.items()][2:] for each in found.dimension_sets]


def test_metrics_of_a_check_have_the_shard_as_a_dimension() -> None:
    """Those of the only job have none; of several, those of all together come from the check of the first."""
    document = {"metrics": {"sink": "cloudwatch"}, "aws": {"region": "us-east-1"}}
    only, several = (settings_of({"shards": shards}, **document) for shards in (1, 2))
    assert dimensions_of(only) == [[]]
    assert [dimensions_of(each) for each in several.by_shard] == [[["Shard 1"]], [["Shard 2"]]]
    sums = [control_plane(each, job=MemoryGlue(ManualClock())).sum_metrics for each in several.by_shard]
    assert isinstance(sums[0], CloudWatchMetrics)
    assert [list(each) for each in sums[0].dimension_sets] == [["Job", "Environment"]]
    assert sums[1] is None
