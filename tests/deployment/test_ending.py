"""No job is deleted below a run that lives: its runs end first, by a removal and by a deployment without the job.

Glue would take the call, and the run would live on without a definition: no call could list or stop it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from boto3.session import Session
from botocore.exceptions import ClientError

from compactor.adapters.aws.glue_job import GlueJob
from compactor.core.ports import ProcessName
from compactor.ledger.heartbeat import Heartbeat
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from deploy import ending, remove
from deploy.__main__ import deploy
from deploy.resolved import Resolver
from deploy.restart import FORCED_SECONDS
from deploy.stack import DeploymentError, Stack
from tests.deployment.canaries import OTHERS, Environment
from tests.deployment.deployments import Deployment
from tests.deployment.test_canary import deployed, release
from tests.deployment.test_deploying import root, session
from tests.support.aws_account.account import Account
from tests.support.memory_store import ManualClock, MemoryStore

__all__ = ["deployed", "release", "root", "session"]  # fixtures

JOB, RUN = "compactor-dev-clicks", "jr_1"
DROPPED = {
    "removed": OTHERS.replace(OTHERS[OTHERS.index('[[streams]]\nname = "clicks"') : OTHERS.rindex("[[streams]]")], ""),
    "shared": OTHERS.replace('"clicks"\njob = "own"\ncanary = true\n', '"clicks"\n'),
}


@dataclass
class World:
    """A stack whose jobs run; time passes where a deployment waits."""

    environment: Environment
    old: Settings
    obeys: bool = True
    clock: ManualClock = field(default_factory=ManualClock)
    passed: float = 0.0

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.account.runs[JOB] = {RUN}
        self.beat()

    @property
    def account(self) -> Account:
        return self.environment.deployment.account

    def app(self, settings: Settings) -> App:
        return App(settings, clock=self.clock, store=self.store)

    def beat(self) -> None:
        """The run works, and says so."""
        of = self.app(self.old.of_stream("clicks"))
        Heartbeat(self.store, of.layout, self.clock, RUN, ProcessName("elsewhere", 1))._write_heartbeat()

    def sleep(self, seconds: float) -> None:
        self.passed += seconds
        self.clock.advance(seconds)
        layout = self.old.of_stream("clicks").layout()
        if self.obeys and self.passed >= 30 and self.store.stat(layout.stop_request(RUN)):
            self.account.runs.get(JOB, set()).discard(RUN)
            self.store.delete([layout.run(RUN), layout.stop_request(RUN)])
        elif RUN in self.account.runs.get(JOB, set()):
            self.beat()
        self.account.minute()

    def settings_at(self, place: str, _: object) -> Settings:
        assert place.startswith("s3://example-artefacts-dev/dev/settings/")
        return self.old


@pytest.fixture
def world(deployed: Environment, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(deployed, deployed.settings())
    time = SimpleNamespace(monotonic=lambda: made.passed, sleep=made.sleep)
    for name, each in {"time": time, "App": made.app, "settings_at": made.settings_at}.items():
        monkeypatch.setattr(ending, name, each)
    monkeypatch.setattr(remove, "App", made.app)
    return made


def deploy_without(world: World, how: str, *, agreed: bool = True) -> None:
    world.environment.write(DROPPED[how])
    deploy("dev", world.environment, confirm=lambda: agreed, root=world.environment.root, may_lose_native=True)


def test_a_job_that_is_deleted_below_its_run() -> None:
    """What the stand-in does, as Glue's page says it: the call succeeds, and the run cannot be found any more."""
    deployment = Deployment()
    deployment.deploy()
    deployment.account.minute()
    [run] = deployment.account.runs["compactor-dev"]
    deployment.delete()
    assert deployment.account.abandoned == {run}
    with pytest.raises(ClientError, match="EntityNotFoundException"):
        deployment.services.client("glue").batch_stop_job_run(JobName="compactor-dev", JobRunIds=[run])


@pytest.mark.parametrize("how", DROPPED)
def test_a_deployment_ends_the_runs_of_jobs_that_it_deletes(
    world: World, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is started meanwhile; then the job goes, and the control plane is called again."""
    deploy_without(world, how)
    shown = capsys.readouterr()
    assert f"Job {JOB} will be deleted; its runs finish the manifests in flight before." in shown.out
    assert f"run {RUN}: asked to stop; it finishes the manifests in flight" in shown.out
    assert "JobOfclicks" not in world.environment.resources()
    assert (world.account.abandoned, world.account.disabled) == (set(), set())
    assert 30 <= world.passed < 60


def test_a_run_that_does_not_end_keeps_its_job(world: World) -> None:
    """The error names the run and what to do; nothing was changed, and the control plane is called."""
    world.obeys = False
    stubborn = {RUN, "jr_2"}
    plans = len(world.environment.deployment.cloudformation.plans)
    before = world.environment.resources()

    class Deaf(set[str]):
        def __isub__(self, _: Any) -> Self:
            return self

    world.account.runs[JOB] = Deaf(stubborn)
    with pytest.raises(DeploymentError, match=r"run jr_1, jr_2: still alive 23 min after .*; end it, then repeat"):
        deploy_without(world, "removed")
    assert world.environment.differing(before) == set()
    assert (world.account.abandoned, world.account.disabled) == (set(), set())
    assert len(world.environment.deployment.cloudformation.plans) == plans
    assert world.passed >= FORCED_SECONDS


def test_nothing_ends_before_it_is_confirmed(world: World) -> None:
    """A plan is shown without a consequence."""
    deploy_without(world, "removed", agreed=False)
    assert (world.account.runs[JOB], world.passed) == ({RUN}, 0.0)


def test_a_removal_ends_all_runs(world: World) -> None:
    """Those of all jobs, and none is started once it began."""
    world.account.minute()
    assert len(world.account.runs) == 3
    assert remove.remove(
        "dev",
        world.environment,
        confirm=lambda: True,
        root=world.environment.root,
        runs_of=lambda app: GlueJob(client=world.environment.client("glue"), name=app.settings.run_name),
    )
    assert world.account.abandoned == set()
    assert not any(world.account.runs.values())


def test_the_settings_of_a_job_are_those_that_it_was_deployed_with(session: Any, root: Path) -> None:
    """Its arguments name them, and its shard, which the settings of the checkout do not have any more."""
    settings = root / "config" / "dev.toml"
    settings.write_text(settings.read_text().replace("[control]", "[control]\nshards = 2", 1))
    deploy("dev", Session, confirm=lambda: True, root=root)
    settings.unlink()
    found = Stack(session.client("cloudformation"), "compactor-dev").deployed()
    job = Resolver(found.template, found.parameters).value(found.template["Resources"]["JobOfShard2"]["Properties"])
    assert ending.settings_of_job(job, session.region_name).run_name == job["Name"] == "compactor-dev-shard-2"
