"""The stand-in for an account refuses what AWS refuses; the template is refused nothing, whatever its parameters."""

import gzip
import html
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import pytest

from deploy.order import with_calls_last
from deploy.policy_size import policy_faults
from deploy.preflight import Preflight, Result, faults_of
from deploy.resolved import Document
from deploy.stack import DeploymentError
from deploy.stack_parameters import with_names
from tests.deployment.deployments import LONGEST_BUCKET_NAME, NAME, Deployment
from tests.deployment.resolving import PSEUDO, parameters_of, template
from tests.deployment.test_drift import drop, put
from tests.support.aws_account.account import Account
from tests.support.aws_account.glue_rules import ignored, not_installed
from tests.support.aws_account.resource import Resource
from tests.support.aws_account.rules import RULES, Refused

OTHER = "210987654321"
LAKE = "example-lake-dev"

Change = Callable[[Document], None]


def a_circle(document: Document) -> None:
    document["Resources"]["EventQueuePolicy"]["DependsOn"] = "InputBucket"


def without_owner(document: Document) -> None:
    del document["Resources"]["DataKey"]["Properties"]["KeyPolicy"]["Statement"][0]


def a_long_policy(document: Document) -> None:
    lengthen(document["Resources"]["OperatorPolicy"]["Properties"]["PolicyDocument"])


def long_inline_policies(document: Document) -> None:
    lengthen(document["Resources"]["JobRole"]["Properties"]["Policies"][0]["PolicyDocument"])


def lengthen(policy: Document) -> None:
    policy["Statement"] += [{**policy["Statement"][0], "Sid": f"More{number}"} for number in range(60)]


REFUSED: list[tuple[str, Change, dict[str, str], Account]] = [
    ("name is taken", lambda _: None, {}, Account(resources=[Resource("AWS::IAM::Role", f"{NAME}-job", {})])),
    ("bucket is taken", lambda _: None, {}, Account(buckets_of_others={LAKE})),
    ("property", put("EventQueue/Properties/MaxRetry", 0), {}, Account()),
    ("property", drop("Job/Properties/Command"), {}, Account()),
    ("property", put("BuilderEventSource/Properties/Id", "x"), {}, Account()),
    ("parameter", lambda _: None, {"LogDays": "8"}, Account()),
    ("parameter", lambda _: None, {"MaxWorkers": "1"}, Account()),
    ("parameter", lambda _: None, {"MaintenanceWindow": "Sunday"}, Account()),
    ("size of a parameter", lambda _: None, {"AlarmEmail": "x" * 4097}, Account()),
    ("size of the template", put("Metadata", "x" * 1_000_000), {}, Account()),
    ("dependency", a_circle, {}, Account()),
    ("unreserved executions", lambda _: None, {"ReserveConcurrency": "yes"}, Account(concurrency=101)),
    ("code is missing", put("SealerFunction/Properties/Code/S3Key", "none.zip"), {}, Account()),
    ("visibility timeout", put("EventQueue/Properties/VisibilityTimeout", 60), {}, Account()),
    ("batching window", drop("BuilderEventSource/Properties/MaximumBatchingWindowInSeconds"), {}, Account()),
    ("notification", drop("InputBucket/DependsOn"), {}, Account()),
    ("key of a log group", put("BuilderLogs/Properties/LogGroupName", "/other"), {"KmsKey": "new"}, Account()),
    ("key policy", without_owner, {"KmsKey": "new"}, Account()),
    ("length of a policy", a_long_policy, {}, Account()),
    ("length of inline policies", long_inline_policies, {}, Account()),
    ("right to create databases", lambda _: None, {}, Account(has_lake_formation=True)),
    ("timeout", put("Job/Properties/Timeout", 10080), {}, Account()),
    ("Glue version", lambda _: None, {}, Account(glue_versions=("5.0", "5.1"))),
    ("worker type", put("Job/Properties/WorkerType", "Z.2X"), {}, Account()),
    ("capacity", put("Job/Properties/MaxCapacity", 3), {}, Account()),
    ("reserved argument", put("Job/Properties/DefaultArguments/--JOB_NAME", "x"), {}, Account()),
    ("reserved argument", put("Job/Properties/DefaultArguments/--conf", "x"), {}, Account()),
]

IGNORED: list[tuple[str, dict[str, Any]]] = [
    ("window beside a timeout", {"Timeout": 10079, "MaintenanceWindow": "Sun:10"}),
    ("unknown argument", {"DefaultArguments": {"--enable-autoscaling": "true"}}),
    ("argument of another version", {"DefaultArguments": {"--python-virtual-env-storage-prefix": "s3://b/"}}),
]

MODULES = [
    ("s3://b/orjson-3.11-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", ""),
    ("s3://b/own-1-cp311-abi3-manylinux_2_28_x86_64.whl,s3://b/six-1-py2.py3-none-any.whl,requests==2.32", ""),
    ("s3://b/own-1-cp311-abi3-manylinux_2_35_x86_64.whl", "needs glibc 2.35, and Glue has 2.34"),
    ("s3://b/orjson-3.11-cp312-cp312-manylinux_2_17_x86_64.whl", "is for cp312, and Glue 6.0 has cp313"),
]

ELSEWHERE = {
    "bucket is not empty",
    "replacement of a named resource",
    "capability",
    "state of the stack",
    "service error",
    "living run of a deleted job",
    "environment",
    "files of Glue",
    "metrics that are not read",
    "access",
    "size of a task",
    "network",
    "role of a policy",
}
"""Rules that other tests try: here, and in the tests of first deployments, ends of jobs and runtimes."""


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"KmsKey": "new"},
        {"KmsKey": "new", "InputBucketIsNew": "no", "InputAccount": OTHER},
        {"GlueVersion": "5.1", "MaintenanceWindow": "Sun:10", "JobTimeoutMinutes": "0"},
        {"ReserveConcurrency": "yes", "InputPrefix": "raw/", "AlarmEmail": "a@example.com"},
        {"MetricDetail": "alarms", "ManifestQueueIsUsed": "yes", "BuilderWindowSeconds": "120"},
    ],
    ids=lambda given: "-".join(given) or "dev",
)
def test_the_template_is_refused_nothing(parameters: dict[str, str]) -> None:
    """Whatever the parameters, the stack is created, and a change of the parameters changes it."""
    deployment = Deployment()
    deployment.deploy(parameters=parameters)
    assert deployment.status == "CREATE_COMPLETE"
    deployment.deploy(parameters={**parameters, "BuilderConcurrency": "3"})
    assert deployment.status == "UPDATE_COMPLETE"


@pytest.mark.parametrize(("rule", "change", "parameters", "account"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_is_refused(rule: str, change: Change, parameters: dict[str, str], account: Account) -> None:
    """The deployment fails by the rule, and leaves nothing of its own in the account."""
    document = template()
    change(document)
    before = list(account.resources)
    with pytest.raises(DeploymentError, match=re.escape(f"[{rule}]")):
        Deployment(account).deploy(document, parameters)
    assert account.resources == before


@pytest.mark.parametrize(("rule", "properties"), IGNORED, ids=[case[0] for case in IGNORED])
def test_what_glue_ignores(rule: str, properties: dict[str, Any]) -> None:
    """What Glue takes and does not do is named."""
    job = {"GlueVersion": "5.1", "DefaultArguments": {"--CONFIG": "s3://b/c"}, **properties}
    assert [name for name, _ in ignored(job, '"--CONFIG"')] == [rule]


@pytest.mark.parametrize(("modules", "words"), MODULES)
def test_what_a_run_cannot_install(modules: str, words: str) -> None:
    """Wheels have to be for the Python and the glibc of the version of Glue."""
    job = {"GlueVersion": "6.0", "DefaultArguments": {"--additional-python-modules": modules}}
    assert [message.endswith(words) for _, message in not_installed(job)] == ([True] if words else [])


def test_every_rule_is_tried() -> None:
    """There is no rule that no test breaks."""
    assert {rule for rule, *_ in (*REFUSED, *IGNORED)} | ELSEWHERE == RULES.keys()
    with pytest.raises(KeyError):
        Refused("no rule", "")


@cache
def model(service: str) -> str:
    """The text of botocore's model of a service, which is AWS's own, without its markup."""
    [*_, path] = sorted((Path(botocore.__file__).parent / "data" / service).glob("*/service-2.json.gz"))
    text = re.sub(r"<[^>]+>", "", gzip.decompress(path.read_bytes()).decode())
    return " ".join(html.unescape(text.replace('\\"', '"')).split())


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.model])
def test_the_sentences_of_the_api_are_there(name: str) -> None:
    """What is cited from AWS's API is in its model."""
    assert RULES[name].sentence in model(RULES[name].model)


@pytest.mark.parametrize(
    ("account", "parameters", "words"),
    [
        (Account(), {}, ""),
        (Account(buckets_of_others={LAKE}), {}, "not checked"),
        (
            Account(resources=[Resource("AWS::IAM::Role", f"{NAME}-job", {})]),
            {},
            "AWS::IAM::Role compactor-dev-job exists",
        ),
        (Account(concurrency=101), {"ReserveConcurrency": "yes"}, "101 unreserved executions: set ReserveConcurrency"),
    ],
    ids=["nothing", "bucket of another account", "name", "quota"],
)
def test_the_checks_before_a_deployment_foresee_it(account: Account, parameters: dict[str, str], words: str) -> None:
    """What CloudFormation would fail by, and a call can tell before, is told before."""
    results = looked_at(Deployment(account), parameters, is_new=True)
    told = [each.found for each in results if each.state != "ok"]
    assert [words in each for each in told] == ([True] if words else []), told
    assert bool(faults_of(results)) is (bool(words) and words != "not checked")


def test_the_checks_before_an_update_foresee_it() -> None:
    """A stack keeps its names; one that a change adds, and that is taken, is a warning, and the update would fail."""
    deployment = Deployment()
    deployment.deploy()
    assert "the stack keeps its names" in {each.found for each in looked_at(deployment, {}, is_new=False)}
    deployment.account.resources.append(Resource("AWS::S3::Bucket", "example-lake-two", {}))
    changed = {"LakeBucketName": "example-lake-two"}
    told = [each.found for each in looked_at(deployment, changed, is_new=False) if each.state == "warning"]
    assert told == ["AWS::S3::Bucket example-lake-two exists outside this stack: a change set that adds it fails"]
    with pytest.raises(DeploymentError, match=r"\[name is taken\]"):
        deployment.deploy(parameters=changed)
    assert deployment.status == "UPDATE_ROLLBACK_COMPLETE"


ALL_NAMES_LONGEST = {
    "JobName": "j" * 40,
    **{f"{each}BucketName": each[0].lower() * LONGEST_BUCKET_NAME for each in ("Work", "Lake", "Artefact", "Input")},
    "KinesisStreams": ",".join(f"{number}".ljust(128, "x") for number in range(4)),
    "InputBucketIsNew": "no",
    "InputKeyArn": "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789012",
    "KmsKey": "new",
}


def test_the_longest_names_fit_into_policies() -> None:
    """Four streams, four buckets and a job, each with the longest name that AWS takes."""
    document = with_names(template(), ALL_NAMES_LONGEST)
    given = {**parameters_of("dev"), **ALL_NAMES_LONGEST}
    assert list(policy_faults(document, {**PSEUDO, **given})) == []
    deployment = Deployment()
    deployment.account.objects.add(f"{given['ArtefactBucketName']}/{given['FunctionsKey']}")
    deployment.deploy(with_calls_last(document, given), ALL_NAMES_LONGEST)
    assert deployment.status == "CREATE_COMPLETE"


def test_policies_that_would_be_too_long_are_found_before() -> None:
    """Each is named with its length, before anything is created; IAM would refuse it amid the deployment."""
    many = {**ALL_NAMES_LONGEST, "KinesisStreams": ",".join(f"{number}".ljust(128, "x") for number in range(20))}
    document, given = with_names(template(), many), {**parameters_of("dev"), **many}
    found = list(policy_faults(document, {**PSEUDO, **given}))
    assert [each.split()[0] for each in found] == ["JobRole", "ReadOnlyPolicy"]
    assert all("list fewer streams" in each for each in found)
    deployment = Deployment()
    deployment.account.objects.add(f"{given['ArtefactBucketName']}/{given['FunctionsKey']}")
    with pytest.raises(DeploymentError, match=r"\[length of (a policy|inline policies)\]"):
        deployment.deploy(with_calls_last(document, given), many)


@pytest.mark.parametrize(
    ("address", "subscriptions", "is_new", "state", "words"),
    [
        ("", {}, True, "warning", "no one receives alarms: set AlarmEmail"),
        ("a@example.com", {}, True, "ok", "once its link is opened"),
        ("a@example.com", {"a@example.com": False}, False, "warning", "has not confirmed its subscription"),
        ("a@example.com", {"a@example.com": True}, False, "ok", "1 confirmed subscriptions"),
        ("a@example.com", {"b@example.com": True}, False, "ok", "once its link is opened"),
        ("", {"b@example.com": False}, False, "warning", "no one receives alarms"),
        ("", {"https://pager.example.com": True}, False, "ok", "1 confirmed subscriptions"),
    ],
)
def test_alarms_that_reach_no_person_are_foreseen(
    address: str, subscriptions: dict[str, bool], is_new: bool, state: str, words: str
) -> None:
    """An empty address, or one that never opened the link in AWS's mail, is a warning of each deployment."""
    deployment = Deployment(Account(subscriptions=subscriptions))
    [found] = looked_at(deployment, {"AlarmEmail": address}, is_new=is_new, only=("alarms",))
    assert found.state == state
    assert words in found.found


@pytest.mark.parametrize(("governs", "state"), [(False, "ok"), (True, "warning")])
def test_lake_formation_is_foreseen(governs: bool, state: str) -> None:
    """Where it decides who may create databases, the deployment says which rights are needed."""
    deployment = Deployment(Account(has_lake_formation=governs))
    tables = {"IcebergDatabase": "sales", "IcebergTable": "sales/orders"}
    [found] = looked_at(deployment, tables, is_new=True, only=("Lake Formation",))
    assert found.state == state
    assert ("sales CREATE_TABLE for the job's role" in found.found) is governs
    assert ("CREATE_DATABASE" in found.found) is governs
    deployment.account.grants.add("CREATE_DATABASE")
    deployment.deploy()
    assert deployment.status == "CREATE_COMPLETE"


def looked_at(
    deployment: Deployment,
    parameters: dict[str, str],
    *,
    is_new: bool,
    only: tuple[str, ...] = ("names", "Lambda quota"),
) -> list[Result]:
    """What some checks find."""
    checks = Preflight(
        session=Session(),
        client=deployment.services.client,
        account="123456789012",
        template=template(),
        parameters={**parameters_of("dev"), **parameters},
        files=(),
        is_new=is_new,
    )
    return list(checks.results(only))


class Session:
    """A session of a region."""

    region_name = "eu-central-1"

    def get_available_regions(self, _: str) -> list[str]:
        return ["eu-central-1"]
