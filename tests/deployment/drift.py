"""Compares the template with the code and the settings. Each check yields a sentence for every difference."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor.core.layout import Layout
from compactor.ndjson.files.rejects import REJECTS_SCHEMA
from compactor.settings.settings import SECTIONS
from compactor.telemetry.metrics import CATALOGUE
from deploy.rights.key_use import key_actions
from tests.deployment.permissions import (
    ACTIONS,
    ANYWHERE,
    BEYOND_CALLS,
    CALLS_OF_TOPICS,
    ENTRIES,
    OF_TOPICS,
    allowed,
    calls,
    statements,
)
from tests.deployment.resolving import ROOT, Document

DIMENSIONS = ("Job", "Environment")
OF_GLUE = ("spark-ui",)
"""Folders of the work bucket that Glue itself fills."""

_HIVE_TYPES = {"string": "string", "int64": "bigint", "binary": "binary"}


@dataclass(frozen=True, slots=True)
class Code:
    """The facts about the code that the template must match.

    Attributes:
        metrics: The names of all metrics in the catalogue.
        variables: The environment variables that the code reads.
        entries: The entry point of the code that runs under each role.
        calls: The AWS calls that the code of each role makes.
        layout: The places in S3.
    """

    metrics: frozenset[str]
    variables: frozenset[str]
    entries: Mapping[str, str]
    calls: Mapping[str, frozenset[str]]
    layout: Layout


def code(layout: Layout) -> Code:
    """The facts about the code, with the places of a layout."""
    keys = (f"COMPACTOR_{name}__{key}".upper() for name, section in SECTIONS.items() for key in section.model_fields)
    return Code(
        metrics=frozenset(CATALOGUE),
        variables=frozenset({"COMPACTOR_CONFIG", *keys}),
        entries=ENTRIES,
        calls={role: calls(role) for role in ENTRIES},
        layout=layout,
    )


def handler_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """The handler of each function is the entry point of its role."""
    functions = {name: each["Properties"] for name, each in found.items() if each["Type"] == "AWS::Lambda::Function"}
    by_role = {each["Role"].removesuffix(".Arn"): each["Handler"] for each in functions.values()}
    expected = {role: entry for role, entry in code.entries.items() if entry.startswith("lambdas.")}
    for role in sorted(by_role.keys() | expected.keys()):
        if by_role.get(role) != expected.get(role):
            yield f"{role}: handler {by_role.get(role)}, expected {expected.get(role)}"
    for handler in by_role.values():
        module, _, function = handler.rpartition(".")
        path = ROOT / Path(*module.split(".")).with_suffix(".py")
        if not path.is_file() or f"def {function}(event" not in path.read_text().replace("(_event", "(event"):
            yield f"handler {handler}: there is no such function"


def variable_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """The code reads every variable of a function and every argument of the job."""
    for name, each in found.items():
        properties = each["Properties"]
        if each["Type"] == "AWS::Lambda::Function":
            variables = properties["Environment"]["Variables"]
            yield from (f"{name}: {key} is not read" for key in variables if key not in code.variables)
            if "COMPACTOR_CONFIG" not in variables:
                yield f"{name}: COMPACTOR_CONFIG is not set"
        if each["Type"] == "AWS::Glue::Job":
            ours = {
                key.removeprefix("--") for key in properties["DefaultArguments"] if key.removeprefix("--").isupper()
            }
            yield from (f"{name}: --{key} is not read" for key in sorted(ours - code.variables - {"CONFIG"}))
            if "CONFIG" not in ours:
                yield f"{name}: --CONFIG is not given"
    places = {
        "COMPACTOR_CONTROL__QUEUE_URL": "EventQueue",
        "COMPACTOR_CONTROL__DEAD_LETTER_QUEUE_URL": "DeadLetterQueue",
        "COMPACTOR_CONTROL__TOPIC_ARN": "AlarmTopic",
    }
    given = found["ControlFunction"]["Properties"]["Environment"]["Variables"]
    for key, resource in places.items():
        if given.get(key) != resource:
            yield f"ControlFunction: {key} is {given.get(key)}, expected {resource}"


def metric_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """Every metric of an alarm or a widget is in the catalogue, with the dimensions that are emitted."""
    for where, namespace, name, dimensions in metrics_of(found):
        if name not in code.metrics:
            yield f"{where}: {name} is not in the catalogue"
        if dimensions != DIMENSIONS:
            yield f"{where}: {name} has the dimensions {dimensions}, expected {DIMENSIONS}"
        if namespace != "Compactor/prod":
            yield f"{where}: {name} has the namespace {namespace}"


def permission_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """Each role allows the actions that its code needs and no others, on named resources."""
    roles = {name: each for name, each in found.items() if each["Type"] == "AWS::IAM::Role"}
    if roles.keys() != code.calls.keys():
        yield f"roles {sorted(roles)}, expected {sorted(code.calls)}"
    has_topics = "BrokersConnection" in found
    for name, every in code.calls.items():
        made = every if has_topics else every - CALLS_OF_TOPICS
        yield from (f"{name}: the actions of {call} are not known" for call in sorted(made - ACTIONS.keys()))
        needed = {action for call in made & ACTIONS.keys() for action in ACTIONS[call]} | BEYOND_CALLS[name].keys()
        needed |= set(key_actions(needed)) if "DataKey" in found else set()
        needed |= OF_TOPICS.keys() if has_topics and name == "JobRole" else set()
        granted = allowed(roles[name])
        yield from (f"{name}: {action} is needed and not allowed" for action in sorted(needed - granted))
        yield from (f"{name}: {action} is allowed and not needed" for action in sorted(granted - needed))
        for sid, actions, resources, condition in statements(roles[name]):
            yield from _statement_faults(f"{name}.{sid}", actions, resources, condition)


def _statement_faults(where: str, actions: list[str], resources: list[str], condition: Document) -> Iterator[str]:
    for action in actions:
        if "*" in action:
            yield f"{where}: {action} is a pattern"
        if "*" in resources and action not in ANYWHERE:
            yield f"{where}: {action} is allowed on everything"
        if action == "cloudwatch:PutMetricData" and not condition:
            yield f"{where}: {action} without a namespace"
        is_about_bucket = action == "s3:ListBucket"
        for arn in resources:
            if action.startswith("s3:") and ("/" not in arn) is not is_about_bucket:
                yield f"{where}: {action} on {arn}"


def lifecycle_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """Only staging, rejects, archive and the logs of the Spark UI expire."""
    layout = code.layout
    work, staging = (place.removeprefix("s3://").partition("/")[0] for place in (layout.state, layout.staging_folder))
    expiring = {
        "WorkBucket": {layout.rejects_folder, layout.archive_folder, *(f"s3://{work}/{own}/" for own in OF_GLUE)},
        "StagingBucket": {layout.staging_folder},
    }
    for name, each in found.items():
        if each["Type"] != "AWS::S3::Bucket":
            continue
        rules = each["Properties"]["LifecycleConfiguration"]["Rules"]
        bucket, expected = staging if name == "StagingBucket" else work, expiring.get(name, set())
        expires = {f"s3://{bucket}/{rule['Prefix']}" for rule in rules if "ExpirationInDays" in rule}
        yield from (f"{name}: {place} expires" for place in sorted(expires - expected))
        yield from (f"{name}: {place} never expires" for place in sorted(expected - expires))
        if not any("AbortIncompleteMultipartUpload" in rule for rule in rules):
            yield f"{name}: incomplete uploads never expire"


def table_faults(found: Mapping[str, Document], code: Code) -> Iterator[str]:
    """Tables read the places that the compactor writes."""
    date = "${file_date}"
    places = {"EventsTable": code.layout.output_folder_of(date), "RejectsTable": code.layout.rejects_folder_of(date)}
    for name, place in places.items():
        table = found[name]["Properties"]["TableInput"]
        template = table["Parameters"]["storage.location.template"]
        if template != place:
            yield f"{name}: reads {template}, expected {place}"
        if not all(
            reader in table.get("Description", "") for reader in ("Athena", "Redshift Spectrum", "EMR", "Spark")
        ):
            yield f"{name}: its description does not say who sees its rows"
        keys = [key["Name"] for key in table["PartitionKeys"]]
        projected = {
            key.split(".")[1] for key in table["Parameters"] if key.startswith("projection.") and key.count(".") > 1
        }
        if projected != set(keys) or "${" + keys[0] + "}" not in template:
            yield f"{name}: partitioned by {keys}, projected by {sorted(projected)}, {template}"
    columns = {each["Name"]: each["Type"] for each in _columns(found["RejectsTable"])}
    expected = {field.name: _HIVE_TYPES[str(field.type)] for field in REJECTS_SCHEMA}
    if columns != expected:
        yield f"RejectsTable: {columns}, expected {expected}"


CHECKS: dict[str, Callable[[Mapping[str, Document], Code], Iterator[str]]] = {
    "handlers": handler_faults,
    "variables": variable_faults,
    "metrics": metric_faults,
    "permissions": permission_faults,
    "lifecycle": lifecycle_faults,
    "tables": table_faults,
}


def metrics_of(found: Mapping[str, Document]) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The metrics of alarms and widgets: alarm or widget, namespace, name, dimensions."""
    for name, each in found.items():
        properties = each["Properties"]
        if each["Type"] == "AWS::CloudWatch::Alarm":
            queries = [
                query["MetricStat"]["Metric"] for query in properties.get("Metrics", ()) if "MetricStat" in query
            ]
            for metric in queries or [properties]:
                dimensions = tuple(dimension["Name"] for dimension in metric["Dimensions"])
                yield name, metric["Namespace"], metric["MetricName"], dimensions
    for widget in widgets(found):
        for line in widget["properties"].get("metrics", ()):
            if isinstance(line[0], str):
                namespace, metric, *dimensions = [part for part in line if isinstance(part, str)]
                yield widget["properties"]["title"], namespace, metric, tuple(dimensions[::2])


def widgets(found: Mapping[str, Document]) -> list[Any]:
    """The widgets of the dashboard."""
    body = json.loads(found["Dashboard"]["Properties"]["DashboardBody"])
    return list(body["widgets"])


def _columns(table: Document) -> list[dict[str, str]]:
    columns: list[dict[str, str]] = table["Properties"]["TableInput"]["StorageDescriptor"]["Columns"]
    return columns
