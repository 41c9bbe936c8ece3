"""The template, the settings and the code agree; a change to only one of them is reported."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from compactor.settings.settings import load_settings
from tests.deployment import drift
from tests.deployment.drift import CHECKS, Code
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template

LAYOUT = load_settings(ROOT / "config" / "prod.toml", {}).layout()


@cache
def current_code() -> Code:
    """The facts about the code, cached because reading it takes seconds."""
    return drift.code(LAYOUT)


def faults(check: str, document: Document, code: Code) -> list[str]:
    return list(CHECKS[check](resources(document, parameters_of("prod")), code))


@pytest.mark.parametrize("check", CHECKS)
def test_template_and_code_agree(check: str) -> None:
    """The template has no difference from the code."""
    assert faults(check, template(), current_code()) == []


def at(document: Document, path: str) -> tuple[Any, str]:
    """The container and key of the value at a path below Resources; numbers in a path are list positions."""
    node: Any = document["Resources"]
    *keys, last = path.split("/")
    for key in keys:
        node = node[int(key) if isinstance(node, list) else key]
    return node, last


def put(path: str, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        node, key = at(document, path)
        node[int(key) if isinstance(node, list) else key] = value

    return change


def drop(path: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        node, key = at(document, path)
        del node[key]

    return change


def reword(path: str, old: str, new: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        node, key = at(document, path)
        assert old in node[key]
        node[key] = node[key].replace(old, new)

    return change


def statement(role: str, sid: str, key: str, value: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        [policy] = document["Resources"][role]["Properties"]["Policies"]
        [found] = [each for each in policy["PolicyDocument"]["Statement"] if each.get("Sid") == sid]
        found[key] = value

    return change


def lifecycle(rule: Document) -> Callable[[Document], None]:
    return lambda document: document["Resources"]["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"].append(
        {"Id": "more", "Status": "Enabled", **rule}
    )


BODY = "Dashboard/Properties/DashboardBody/Fn::Sub"
VARIABLES = "Properties/Environment/Variables"

IN_THE_TEMPLATE = [
    ("handlers", put("SealerFunction/Properties/Handler", "lambdas.sealer.handler"), "there is no such function"),
    ("handlers", put("SealerFunction/Properties/Handler", "lambdas.manifest_sealer.handle"), "no such function"),
    ("handlers", put("SealerFunction/Properties/Handler", "lambdas.manifest_builder.handler"), "SealerRole: handler"),
    ("variables", put(f"BuilderFunction/{VARIABLES}", {"COMPACTOR_CONF": "x"}), "COMPACTOR_CONF is not read"),
    ("variables", put(f"ControlFunction/{VARIABLES}/COMPACTOR_CONTROL__QUEUE", "x"), "COMPACTOR_CONTROL__QUEUE"),
    ("variables", put(f"ControlFunction/{VARIABLES}/COMPACTOR_CONTROL__TOPIC_ARN", "x"), "expected AlarmTopic"),
    ("variables", drop(f"SealerFunction/{VARIABLES}/COMPACTOR_CONFIG"), "COMPACTOR_CONFIG is not set"),
    ("variables", drop("Job/Properties/DefaultArguments/--CONFIG"), "--CONFIG is not given"),
    ("variables", put("Job/Properties/DefaultArguments/--COMPACTOR_METRICS__NAME", "x"), "COMPACTOR_METRICS__NAME"),
    ("metrics", put("QueueAgeAlarm/Properties/MetricName", "QueueAge"), "QueueAge is not in the catalogue"),
    ("metrics", reword(BODY, '"PartsPending"', '"PendingParts"'), "PendingParts is not in the catalogue"),
    ("metrics", put("QueueAgeAlarm/Properties/Dimensions", []), "has the dimensions ()"),
    ("metrics", put("QueueAgeAlarm/Properties/Namespace", "AWS/SQS"), "has the namespace AWS/SQS"),
    ("permissions", statement("SealerRole", "Claim", "Action", "dynamodb:PutItem"), "BatchGetItem is needed"),
    ("permissions", statement("ControlRole", "Notify", "Action", "sns:Subscribe"), "sns:Publish is needed"),
    (
        "permissions",
        statement("BuilderRole", "Write", "Action", ["s3:PutObject", "s3:AbortMultipartUpload"]),
        "not needed",
    ),
    ("permissions", statement("JobRole", "Read", "Action", "s3:Get*"), "s3:Get* is a pattern"),
    ("permissions", statement("JobRole", "Read", "Resource", "*"), "is allowed on everything"),
    ("permissions", statement("JobRole", "PutMetrics", "Condition", {}), "without a namespace"),
    ("permissions", statement("JobRole", "Delete", "Resource", "arn:aws:s3:::lake"), "s3:DeleteObject on"),
    ("lifecycle", lifecycle({"Prefix": "state/ledger/", "ExpirationInDays": 365}), "state/ledger/ expires"),
    ("lifecycle", lifecycle({"Prefix": "state/checkpoint/", "ExpirationInDays": 365}), "checkpoint/ expires"),
    (
        "lifecycle",
        put("LakeBucket/Properties/LifecycleConfiguration/Rules", [{"Prefix": "", "ExpirationInDays": 1}]),
        "expires",
    ),
    (
        "tables",
        put("EventsTable/Properties/TableInput/Parameters/storage.location.template", "s3://lake/${file_date}/"),
        "EventsTable: reads",
    ),
    ("tables", put("EventsTable/Properties/TableInput/PartitionKeys/0/Name", "day"), "partitioned by ['day']"),
    ("tables", put("RejectsTable/Properties/TableInput/Description", "Rejects"), "does not say who sees its rows"),
]


@pytest.mark.parametrize(
    ("check", "change", "words"), IN_THE_TEMPLATE, ids=lambda each: each[:40] if isinstance(each, str) else None
)
def test_a_change_of_the_template_alone_is_noticed(check: str, change: Callable[[Document], None], words: str) -> None:
    """The check reports what was renamed, added or removed in the template."""
    document = template()
    change(document)
    assert any(words in fault for fault in faults(check, document, current_code())), faults(
        check, document, current_code()
    )


def without_call(role: str, call: str) -> Callable[[Code], Code]:
    return lambda code: replace(code, calls={**code.calls, role: code.calls[role] - {call}})


def with_call(role: str, call: str) -> Callable[[Code], Code]:
    return lambda code: replace(code, calls={**code.calls, role: code.calls[role] | {call}})


IN_THE_CODE: list[tuple[str, Callable[[Code], Code], str]] = [
    ("handlers", lambda code: replace(code, entries={**code.entries, "SealerRole": "lambdas.s.handler"}), "SealerRole"),
    ("variables", lambda code: replace(code, variables=code.variables - {"COMPACTOR_CONTROL__TOPIC_ARN"}), "TOPIC_ARN"),
    ("metrics", lambda code: replace(code, metrics=code.metrics - {"Heartbeat"}), "NoHeartbeatAlarm: Heartbeat"),
    ("metrics", lambda code: replace(code, metrics=code.metrics - {"ArrivalToVisibleSeconds"}), "Arrival to visible"),
    ("permissions", with_call("BuilderRole", "upload_file"), "BuilderRole: s3:AbortMultipartUpload is needed"),
    ("permissions", with_call("BuilderRole", "delete_item"), "the actions of delete_item are not known"),
    ("permissions", without_call("ControlRole", "batch_stop_job_run"), "BatchStopJobRun is allowed and not needed"),
    ("lifecycle", lambda code: replace(code, layout=replace(LAYOUT, state="s3://example-compactor-prod/s")), "expires"),
    ("tables", lambda code: replace(code, layout=replace(LAYOUT, output_folder="date={date}")), "EventsTable: reads"),
]


@pytest.mark.parametrize(
    ("check", "change", "words"), IN_THE_CODE, ids=lambda each: each[:40] if isinstance(each, str) else None
)
def test_a_change_of_the_code_alone_is_noticed(check: str, change: Callable[[Code], Code], words: str) -> None:
    """The check reports what the template lacks, or no longer needs, after a change to the code."""
    assert any(words in fault for fault in faults(check, template(), change(current_code())))
