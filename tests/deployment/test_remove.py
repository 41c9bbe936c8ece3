"""An environment is removed without losing a line: its jobs end first, and what holds data stays."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from boto3.session import Session

from compactor.control.snapshot import JobRun, JobState
from compactor.core.errors import SettingsError
from compactor.ledger.heartbeat import Runs
from deploy.__main__ import deploy
from deploy.ending import Ending
from deploy.remove import remove
from deploy.restart import FORCED_SECONDS
from deploy.stack import DeploymentError
from tests.deployment.test_deploying import root, session
from tests.deployment.test_restart import Alive, Scene

__all__ = ["root", "session"]  # fixtures

STAYING = ("example-compactor-dev", "example-lake-dev", "example-raw-dev", "compactor-dev-events")


@dataclass
class Glue:
    """Runs of a job by id, each living until it is stopped or ends."""

    living: set[str] = field(default_factory=set)
    obeys: bool = True
    stopped: list[str] = field(default_factory=list)

    def list(self, since: datetime) -> list[JobRun]:
        return [JobRun(each, JobState.RUNNING, since, since) for each in self.living]

    def defined_at(self) -> None: ...

    def start(self) -> str | None:
        raise AssertionError("a removed job is not started")

    def stop(self, run_id: str) -> None:
        self.stopped.append(run_id)
        if self.obeys:
            self.living.discard(run_id)


def ended(scene: Scene, glue: Glue) -> None:
    harness = scene.harness
    Ending(
        job=glue,
        runs=Runs(harness.store, harness.layout, harness.clock, Alive()),
        drain_seconds=900,
        clock=harness.clock,
        seconds=lambda: scene.passed,
        pause=scene.pause,
        echo=scene.lines.append,
    ).go()


def test_a_run_finishes_what_is_in_flight() -> None:
    """It is asked to stop, and Glue does not stop it while it may still finish."""
    scene, glue = Scene(), Glue({"a"})
    scene.begin("a", "0.1.0")
    scene.later(84, lambda: (scene.end("a"), glue.living.discard("a")))
    ended(scene, glue)
    assert scene.lines == [
        "run a: asked to stop; it finishes the manifests in flight",
        "No run is alive; 1 run ended.",
    ]
    assert glue.stopped == []


def test_a_run_that_starts_meanwhile_is_ended_too() -> None:
    """Also one that sends no heartbeat yet, and one that works elsewhere than on Glue."""
    scene, glue = Scene(), Glue({"a"})
    scene.later(10, lambda: (glue.living.add("b"), scene.begin("c", "0.1.0")))
    scene.later(20, glue.living.clear)
    scene.later(30, lambda: scene.end("c"))
    ended(scene, glue)
    assert [line.split(":")[0] for line in scene.lines[:-1]] == ["run a", "run b", "run c"]
    assert scene.lines[-1] == "No run is alive; 3 runs ended."


def test_a_run_that_is_late_is_stopped_by_glue() -> None:
    """Once; and if that does not help, the stack is not deleted below it."""
    scene, glue = Scene(), Glue({"a"})
    ended(scene, glue)
    assert (glue.stopped, scene.passed) == (["a"], 902)
    hung, deaf = Scene(), Glue({"a"}, obeys=False)
    with pytest.raises(DeploymentError, match="run a: still alive 23 min after it was asked to stop; end it"):
        ended(hung, deaf)
    assert (deaf.stopped, hung.passed) == (["a"], 900 + FORCED_SECONDS)


def removed(root: Path, glue: Glue, confirm: Callable[[], bool] = lambda: True) -> bool:
    return remove("dev", Session, confirm=confirm, root=root, runs_of=lambda _: glue)


def test_what_holds_data_stays(session: Any, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All is shown before; the schedules end, then the stack is deleted; each thing that stays has its command."""
    with pytest.raises(DeploymentError, match="stack compactor-dev: not deployed"):
        removed(root, Glue())
    deploy("dev", Session, confirm=lambda: True, root=root)
    capsys.readouterr()
    assert not removed(root, Glue(), confirm=lambda: False)
    shown = capsys.readouterr().out
    assert all(name in shown for name in STAYING)
    events = session.client("events")
    assert events.describe_rule(Name="compactor-dev-control")["State"] == "ENABLED"
    states: list[str] = []

    class Watching(Glue):
        def list(self, since: datetime) -> list[JobRun]:
            states[:] = [
                events.describe_rule(Name=f"compactor-dev-{each}")["State"] for each in ("control", "job-state")
            ]
            return super().list(since)

    assert removed(root, Watching())
    shown = capsys.readouterr().out
    assert states == ["DISABLED", "DISABLED"]
    commands = [line for line in shown.splitlines() if line.startswith("  aws ")]
    assert [line for line in commands if line.count("aws ") != line.count("--region eu-central-1")] == []
    assert any(line.startswith("  aws s3 rm s3://example-lake-dev --recursive ") for line in commands)
    assert "aws dynamodb delete-table --table-name" in shown
    with pytest.raises(DeploymentError, match="not deployed"):
        removed(root, Glue())


def test_a_removal_that_fails_leaves_the_job_to_its_control_plane(session: Any, root: Path) -> None:
    """A run that cannot be listed ends the removal, and the schedules are as they were."""
    deploy("dev", Session, confirm=lambda: True, root=root)

    class Broken(Glue):
        def list(self, since: datetime) -> list[JobRun]:
            raise DeploymentError(f"no answer on runs since {since}")

    with pytest.raises(DeploymentError, match="no answer"):
        removed(root, Broken())
    rule = session.client("events").describe_rule(Name="compactor-dev-control")
    assert rule["State"] == "ENABLED"


@pytest.mark.usefixtures("session")
def test_the_settings_have_to_be_those_that_are_deployed(root: Path) -> None:
    """A job that they lack would be deleted with its run."""
    settings = root / "config" / "dev.toml"
    before = settings.read_text()
    settings.write_text(before.replace("[control]", "[control]\nshards = 2", 1))
    deploy("dev", Session, confirm=lambda: True, root=root)
    settings.write_text(before)
    with pytest.raises(SettingsError, match="job compactor-dev-shard-2: the settings do not have it"):
        removed(root, Glue())


@pytest.mark.usefixtures("session")
def test_a_job_on_emr_is_removed_first(root: Path) -> None:
    """Its stack is another one, and its runs are not Glue's."""
    settings = root / "config" / "dev.toml"
    settings.write_text(
        settings.read_text()
        + '\n[emr]\napplication_id = "00f1abcd2efg3h09"\nrole_arn = "arn:aws:iam::123456789012:role/r"\n'
        + 'entry_point = "s3://example/glue_entry.py"\narchive = "s3://example/archive.tar.gz"\n'
        + '[convert]\nengine = "native"\n'
    )
    with pytest.raises(SettingsError, match="delete the stack compactor-dev-emr first"):
        removed(root, Glue())
