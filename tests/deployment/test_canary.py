"""A canary is one stream whose job has a release before all else: it goes out, back, or on to all, and nowhere else."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cfnlint.api import lint_file
from click.testing import CliRunner

from compactor.core.errors import SettingsError
from compactor.schema.registry import EMPTY_SCHEMA
from compactor.wiring import operating
from deploy import __main__ as main
from deploy import steps
from deploy.__main__ import deploy
from deploy.canary import canary_of, release_of
from deploy.canary_deployment import deploy_canary, withdraw_canary
from deploy.order import CALLS
from deploy.stack import DeploymentError
from deploy.streams import with_streams
from tests.deployment.canaries import CHANGED, OTHERS, ROLE, Environment
from tests.deployment.resolving import template

OLD, NEW = "0.1.0", "0.2.0"
EMR = {
    "application_id": "00f1abcd2efg3h09",
    "role_arn": "arn:aws:iam::123456789012:role/emr",
    "entry_point": "s3://emr-files/e.py",
    "archive": "s3://emr-files/a.tar.gz",
}


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the checkout one of a release; nothing of it reaches for the network."""

    def app(settings: Any) -> Any:
        registry = SimpleNamespace(latest=lambda: EMPTY_SCHEMA)
        return SimpleNamespace(settings=settings, registry=registry)

    monkeypatch.setattr(main, "App", app)
    monkeypatch.setattr(steps, "App", app)
    monkeypatch.setattr(operating, "publish_columns", lambda _: None)
    monkeypatch.setattr("deploy.checkout.load_template", template)  # read once

    def checked_out(version: str) -> None:
        monkeypatch.setattr("deploy.__main__.__version__", version)
        monkeypatch.setattr("deploy.steps.__version__", version)
        monkeypatch.setattr("deploy.canary_deployment.__version__", version)

    return checked_out


@pytest.fixture
def deployed(tmp_path: Path, release: Callable[[str], None]) -> Environment:
    """Deployed by the old release; the checkout is the new one, packaged."""
    release(OLD)
    made = Environment(tmp_path)
    assert [each.settings.name for each in deploy_all(made)] == ["", "clicks", "views"]
    release(NEW)
    made.package(NEW)
    return made


def deploy_all(deployed: Environment) -> tuple[Any, ...]:
    return deploy("dev", deployed, confirm=lambda: True, root=deployed.root)


def put(deployed: Environment, *, agreed: bool = True) -> Any:
    return deploy_canary("dev", deployed, confirm=lambda: agreed, root=deployed.root)


def back(deployed: Environment) -> Any:
    return withdraw_canary("dev", deployed, confirm=lambda: True, root=deployed.root)


def wheels(deployed: Environment, job: str) -> str:
    arguments: dict[str, str] = deployed.resources()[job]["DefaultArguments"]
    return arguments["--additional-python-modules"]


def changes(shown: str) -> list[str]:
    """The names of the resources that a deployment showed as changed, without how."""
    found = shown.rpartition("Changes\n")[2].partition("\n\n")[0]
    return [line.split()[1] for line in found.splitlines()]


def test_only_the_canarys_job_gets_the_release(deployed: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """The change set has one resource; functions and all other jobs, roles and alarms are exactly as they were."""
    before = deployed.resources()
    assert put(deployed).name == "clicks"
    shown = capsys.readouterr().out
    assert changes(shown) == [CHANGED]
    assert "the job of clicks gets release 0.2.0. All else keeps release 0.1.0, the functions too." in shown
    assert deployed.differing(before) == {CHANGED}
    assert [f"-{NEW}-" in wheels(deployed, job) for job in ("Job", CHANGED, "JobOfviews")] == [False, True, False]
    job = deployed.resources()[CHANGED]
    assert {**job["DefaultArguments"], "--STREAM": ""}.keys() == before["Job"]["DefaultArguments"].keys() | {"--STREAM"}
    assert (job["Name"], job["DefaultArguments"]["--STREAM"]) == ("compactor-dev-clicks", "clicks")
    assert canary_of(deployed.stack_template).release == NEW  # type: ignore[union-attr]
    assert release_of(deployed.stack_template) == OLD


def test_a_canary_that_is_fine_goes_on_to_all(deployed: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """What was tried is what all get: the deployment to all changes everything but the canary's job."""
    put(deployed)
    tried = deployed.resources()[CHANGED]
    capsys.readouterr()
    deploy_all(deployed)
    shown = capsys.readouterr().out
    assert "This deployment brings all else to release 0.2.0, and leaves this job as it is." in shown
    assert CHANGED not in changes(shown)
    assert {"Job", "JobOfviews", "BuilderFunction", "ControlFunction"} <= {*changes(shown)}
    assert deployed.resources()[CHANGED] == tried
    assert canary_of(deployed.stack_template) is None
    deploy_all(deployed)
    assert capsys.readouterr().out.endswith("Nothing to change.\n")


def test_other_artefacts_than_those_that_were_tried_are_told(
    deployed: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who goes on with a later build sees that the canary's is another."""
    put(deployed)
    deployed.package("0.2.1")
    capsys.readouterr()
    deploy_all(deployed)
    shown = capsys.readouterr().out
    assert "brings all to release 0.2.0, with other artefacts or settings than this job has" in shown
    assert CHANGED in changes(shown)


def test_a_canary_that_is_broken_goes_back_from_any_checkout(
    deployed: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Going back needs neither the artefacts nor the settings of before, not even the name of the canary."""
    before = deployed.resources()
    put(deployed)
    deployed.package("0.3.0")
    deployed.write(OTHERS.replace('"clicks"\njob = "own"\ncanary = true', '"clicks"\njob = "own"'))
    capsys.readouterr()
    canary, others = back(deployed)
    assert (canary.stream, others) == ("clicks", OLD)
    assert deployed.differing(before) == set()
    assert changes(capsys.readouterr().out) == [CHANGED]
    assert canary_of(deployed.stack_template) is None
    assert back(deployed) is None
    assert "No stream has its own release" in capsys.readouterr().out


def test_a_second_build_takes_the_place_of_the_first(deployed: Environment) -> None:
    """A canary may be corrected by another build; back is still what all others have."""
    before = deployed.resources()
    put(deployed)
    deployed.package("0.2.1")
    assert put(deployed).name == "clicks"
    assert "-0.2.1-" in wheels(deployed, CHANGED)
    back(deployed)
    assert deployed.differing(before) == set()


def test_a_canary_that_is_not_confirmed_changes_nothing(deployed: Environment) -> None:
    """Nothing is uploaded but the template, and the change set is gone."""
    before, plans = deployed.resources(), len(deployed.deployment.cloudformation.plans)
    objects = {*deployed.deployment.account.objects}
    assert put(deployed, agreed=False) is None
    assert deployed.differing(before) == set()
    assert deployed.deployment.account.objects == objects
    assert len(deployed.deployment.cloudformation.plans) == plans


def test_its_role_gets_the_rights_of_both_releases(
    deployed: Environment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the new job needs is added beside what its role has, and to no other role; it goes when the canary goes."""
    before = deployed.resources()
    newer = template()
    [policy] = newer["Resources"]["JobRole"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    added = {
        "Sid": "New",
        "Effect": "Allow",
        "Action": "s3:GetObjectTagging",
        "Resource": {"Fn::Sub": "${InputBucketName}"},
    }
    statements[:] = [each for each in statements if each.get("Sid") != "AddColumns"] + [added]
    monkeypatch.setattr("deploy.checkout.load_template", lambda: newer)
    put(deployed)
    assert sorted(changes(capsys.readouterr().out)) == [CHANGED, ROLE]
    assert deployed.differing(before) == {CHANGED, ROLE}
    old_policy, of_canary = deployed.resources()[ROLE]["Policies"]
    assert [old_policy] == before[ROLE]["Policies"]
    assert [each["Sid"] for each in of_canary["PolicyDocument"]["Statement"]] == ["New"]
    back(deployed)
    assert deployed.differing(before) == set()


def test_a_job_that_needs_what_the_stack_lacks_is_refused(
    deployed: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release whose job names a new resource goes to all at once."""
    newer = template()
    newer["Resources"]["Job"]["Properties"]["Connections"] = {"Connections": [{"Ref": "NewConnection"}]}
    monkeypatch.setattr("deploy.checkout.load_template", lambda: newer)
    with pytest.raises(SettingsError, match="NewConnection: not in the stack"):
        put(deployed)


def test_two_deployments_at_once(deployed: Environment) -> None:
    """A canary is made from the template of the stack: made from one that is replaced meanwhile, it is not executed."""
    waiting = [deploy_all]

    def other_first() -> None:
        if waiting:
            waiting.pop()(deployed)

    deployed.on_propose = other_first
    with pytest.raises(DeploymentError, match="a concurrent deployment changed it; deploy again"):
        put(deployed)
    assert canary_of(deployed.stack_template) is None
    assert f"-{NEW}-" in wheels(deployed, "Job")


def test_two_people_who_agree_at_once(deployed: Environment) -> None:
    """The change set of who agrees last is gone by then, as CloudFormation says."""

    def agreed() -> bool:
        deploy_all(deployed)
        return True

    with pytest.raises(ClientError, match="ChangeSetNotFound"):
        deploy_canary("dev", deployed, confirm=agreed, root=deployed.root)
    assert canary_of(deployed.stack_template) is None
    assert f"-{NEW}-" in wheels(deployed, "Job")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda env: env.write(OTHERS.replace("canary = true", "")), "none has canary = true"),
        (
            lambda env: env.write(OTHERS, paths={"output": "s3://example-lake-dev/elsewhere"}),
            "OutputPrefix: elsewhere -> expected events, as deployed",
        ),
        (
            lambda env: env.write(OTHERS, convert={"engine": "native"}, emr=EMR),
            "a canary needs a job on Glue",
        ),
        (lambda env: env.give(ArtefactBucketName="example-artefacts-2"), "ArtefactBucketName: example-artefacts-2"),
        (lambda env: env.write(OTHERS.replace(".clicks", ".taps")), r"clicks: table taps at .* expected clicks at"),
        (lambda env: env.write(OTHERS.replace('"clicks"', '"taps"')), "no separate job"),
    ],
)
def test_settings_that_do_not_fit_the_stack_are_refused(
    deployed: Environment, change: Callable[[Environment], None], fault: str
) -> None:
    """The job of the canary has to find its places in the stack as it is. What is wrong is said first."""
    before = deployed.resources()
    change(deployed)
    with pytest.raises(SettingsError, match=fault):
        put(deployed)
    assert deployed.differing(before) == set()


def test_what_no_job_finds_its_places_by_may_differ(deployed: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """The canary's job has its limits at once; the stack gets them with the deployment to all."""
    before = deployed.resources()
    deployed.write(OTHERS, control={"sla_seconds": 300})
    deployed.give(Tags={"team": "lake"}, MaxWorkers="5")
    put(deployed)
    shown = capsys.readouterr().out
    assert "These change only with the deployment to all: SlaSeconds, HalfSlaSeconds, LogLateSeconds." in shown
    assert deployed.differing(before) == {CHANGED}
    assert (deployed.resources()[CHANGED]["NumberOfWorkers"], before[CHANGED]["NumberOfWorkers"]) == ("5", "3")
    given = [*deployed.deployment.cloudformation.given.values()][-1]
    tags = {each["Key"]: each["Value"] for each in given["Tags"]}
    assert tags == {"application": "compactor", "team": "data"}  # others would change every resource


def test_one_canary_at_a_time(deployed: Environment) -> None:
    """Who names another stream first takes the canary back, or deploys to all."""
    put(deployed)
    deployed.write(
        OTHERS.replace("canary = true\n", "").replace('"views"\njob = "own"', '"views"\njob = "own"\ncanary = true')
    )
    with pytest.raises(SettingsError, match=r"clicks already has release 0\.2\.0 -> expected one canary"):
        put(deployed)
    back(deployed)
    assert put(deployed).name == "views"


def test_a_stream_that_goes_during_its_canary(deployed: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """A deployment to all deletes its job, and says that it was the canary; going back before that works, too."""
    put(deployed)
    first, last = OTHERS.index('\n[[streams]]\nname = "clicks"'), OTHERS.index('\n[[streams]]\nname = "views"')
    deployed.write(OTHERS[:first] + OTHERS[last:])
    with pytest.raises(SettingsError, match="none has canary = true"):
        put(deployed)
    canary, _ = back(deployed)
    assert canary.stream == "clicks"
    deployed.write(OTHERS)
    put(deployed)
    deployed.write(OTHERS[:first] + OTHERS[last:])
    capsys.readouterr()
    deploy_all(deployed)
    assert "deletes this stream's job, because the settings no longer have it" in capsys.readouterr().out
    assert CHANGED not in deployed.resources()
    assert canary_of(deployed.stack_template) is None


def test_a_further_stream_during_a_canary(deployed: Environment, capsys: pytest.CaptureFixture[str]) -> None:
    """With the canary's settings it waits for the deployment to all; the canary's job is not touched by it."""
    put(deployed)
    capsys.readouterr()
    new = OTHERS.rpartition("[[streams]]")[2].replace("views", "returns")
    deployed.write(f"{OTHERS}\n[[streams]]{new}")
    before = deployed.resources()
    put(deployed)
    assert deployed.differing(before) == {CHANGED}  # which reads the new settings
    deploy_all(deployed)
    added = deployed.differing(before)
    assert {"JobOfreturns", "EventsTableOfreturns"} <= added


def test_without_a_deployment_there_is_no_canary(tmp_path: Path, release: Callable[[str], None]) -> None:
    """The first deployment is one to all."""
    release(OLD)
    with pytest.raises(DeploymentError, match="stack compactor-dev: not deployed; run make deploy ENV=dev first"):
        put(Environment(tmp_path))


def test_an_old_policy_of_the_deployer_stops_no_deployment(
    deployed: Environment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the right to read the template, a deployment to all goes on, and says what is not known."""

    def refused(**_: str) -> None:
        raise DeploymentError("AccessDenied: cloudformation:GetTemplate")

    monkeypatch.setattr(type(deployed.deployment.cloudformation), "get_template", lambda *_, **given: refused(**given))
    deploy_all(deployed)
    assert "Cannot tell whether a stream has its own release" in capsys.readouterr().err
    assert f"-{NEW}-" in wheels(deployed, "Job")


def test_the_command_tells_wrong_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """CANARY is 1 or back; the stream is named in the settings."""
    monkeypatch.setattr(main, "Session", lambda **_: pytest.fail("asked AWS"))
    done = CliRunner().invoke(main.main, ["dev", "--canary", "clicks"])
    assert done.exit_code == 2
    assert "'clicks' is not one of '1', 'back'" in done.output


def test_a_stack_without_canary_is_as_before(deployed: Environment) -> None:
    """The template of the streams does not depend on which one is the canary."""
    named = deployed.settings()
    deployed.write(OTHERS.replace("canary = true", ""))
    assert json.dumps(with_streams(template(), named)) == json.dumps(with_streams(template(), deployed.settings()))


@pytest.mark.large
def test_cfn_lint_finds_nothing(deployed: Environment) -> None:
    """The linter accepts the template with a canary."""
    put(deployed)
    path = deployed.root / "template.json"
    document = deployed.stack_template
    for name in CALLS:  # which depend on all that these parameters create, by `with_calls_last`
        del document["Resources"][name]["DependsOn"]
    path.write_text(json.dumps(document))
    assert [str(match) for match in lint_file(path)] == []
