"""The template of several streams: tables, rules of expiry, alarms and jobs of each, beside what all have together.

Of the resources that a stream has for itself, none depends on another stream. What all streams have together names
streams by patterns only, except for the work bucket, whose rules of expiry cannot have patterns, and schema files.
"""

import json
from collections.abc import Iterator
from typing import Any

from compactor.core.errors import SettingsError
from compactor.core.layout import is_within
from compactor.settings.settings import Settings
from deploy.dashboard import with_stream_widgets

Document = dict[str, Any]

MAX_RESOURCES = 500
"""The most resources of a stack [CloudFormation quotas]."""

OF_ONE_STREAM = ("EventsTableName", "OutputFolder")
"""Parameters that the template of several streams does without."""

_STATE = "${StatePrefix}/"
_KINDS = ("accepted", "open", "recent", "control", "runs", "landing")  # below the state; what roles name apart
_OF_QUEUE = ("EventsDeadLetteredAlarm", "QueueAgeAlarm")  # the check of the shared job watches the queue
_OF_STREAM = ("OldestManifestAgeAlarm", "NoHeartbeatAlarm", "SealerAlarm")  # what others would hide in a common metric
_THRESHOLDS = {"SlaSeconds": 1.0, "HalfSlaSeconds": 0.5}


def with_streams(template: Document, settings: Settings) -> Document:
    """A copy of the template for the streams of some settings; the same for settings without streams.

    Raises:
        SettingsError: There are more streams than a stack can hold.
    """
    if not settings.streams:
        return template
    changed: Document = json.loads(json.dumps(template).replace("${EventsTableName}", "*"))
    _share(changed, settings)
    resources = changed["Resources"]
    events, rejects = resources.pop("EventsTable"), resources.pop("RejectsTable")
    for name in OF_ONE_STREAM:
        del changed["Parameters"][name]
    for group in changed["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]:
        group["Parameters"] = [each for each in group["Parameters"] if each not in OF_ONE_STREAM]
    alarms = {name: each for name, each in resources.items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    for stream in settings.streams:
        resources[logical_id("EventsTable", stream)] = _events_table(events, stream)
        resources[logical_id("RejectsTable", stream)] = _rejects_table(rejects, stream)
        resources.update(_jobs(resources["Job"], stream))
        resources.update(_alarms(alarms, stream))
        resources["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"] += _rules(template, stream)
    dashboard = resources["Dashboard"]["Properties"]["DashboardBody"]
    dashboard["Fn::Sub"] = with_stream_widgets(dashboard["Fn::Sub"])
    resources["FilesUnroutedAlarm"] = _unrouted(alarms["FilesMisdatedAlarm"])
    if len(resources) > MAX_RESOURCES:
        raise SettingsError(
            [f"streams: {len(resources)} resources -> expected at most {MAX_RESOURCES}: use fewer streams"]
        )
    return changed


def stream_faults(settings: Settings) -> list[str]:
    """What of the streams this stack does not support."""
    faults = []
    databases = {each.schema.table.partition(".")[0] for each in settings.streams}
    if settings.streams and not settings.sharing:
        faults.append('streams -> expected at least one with job = "shared"')
    if len(databases) > 1 or "" in databases:
        faults.append("streams: schema.table -> expected a table for each stream, all of one database")
    tables = [name for each in settings.streams for name in _tables_of(each)]
    faults += [f"streams: table {name} -> expected once" for name in sorted({*tables}) if tables.count(name) > 1]
    faults += [
        f"streams.{each.name}.paths.output: {each.paths.output} -> expected a place within {settings.paths.output}"
        for each in settings.streams
        if not is_within(each.paths.output, settings.paths.output)
    ]
    return faults


def logical_id(kind: str, stream: Settings) -> str:
    """The name of a resource of a stream in the template, of letters and digits only. No name has a capital letter."""
    return f"{kind}Of{stream.name.replace('-', 'Z')}"


def database_of(settings: Settings) -> str:
    """The database that the tables of all streams are in.

    Raises:
        SettingsError: The streams are not as this stack supports them.
    """
    if faults := stream_faults(settings):
        raise SettingsError(faults)
    return settings.streams[0].schema.table.partition(".")[0]


def _tables_of(stream: Settings) -> tuple[str, str]:
    """The names of the tables of the rows and of the rejects."""
    table = stream.schema.table.partition(".")[2]
    return table, f"{table}_rejects"


def copied(node: Any, **replaced: str) -> Any:
    """A copy in which some names between `${` and `}` are replaced by texts, and references to them by `Fn::Sub`."""
    text = json.dumps(node)
    for name, value in replaced.items():
        text = text.replace(json.dumps({"Ref": name}), json.dumps({"Fn::Sub": f"${{{name}}}"}))
        text = text.replace(f"${{{name}}}", json.dumps(value)[1:-1])
    return json.loads(text)


def _share(changed: Document, settings: Settings) -> None:
    """Let roles, rules and policies that all streams have together reach the places and jobs of any stream."""
    for resource in changed["Resources"].values():
        for statement in statements_of(resource):
            statement["Resource"] = _reaching(statement["Resource"])
            if statement["Sid"] == "Read" and "${OutputPrefix}" in json.dumps(statement):
                statement["Resource"] += [
                    {"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::{each.schema.file.removeprefix('s3://')}"}
                    for each in settings.streams
                    if each.schema.file
                ]
    names = changed["Resources"]["JobStateRule"]["Properties"]["EventPattern"]["detail"]["jobName"]
    names.append({"prefix": {"Fn::Sub": "${JobName}-"}})


def statements_of(node: Any) -> Iterator[Document]:
    """The statements of the policies of a resource, also those that depend on a condition."""
    if isinstance(node, dict):
        if "Sid" in node and "Resource" in node:
            yield node
        else:
            for each in node.values():
                yield from statements_of(each)
    elif isinstance(node, list):
        for each in node:
            yield from statements_of(each)


def _reaching(place: Any) -> Any:
    """The resources of a statement, with those of streams."""
    places = place if isinstance(place, list) else [place]
    added = []
    for each in places:
        text = each.get("Fn::Sub", "") if isinstance(each, dict) else ""
        if isinstance(text, str) and text.endswith(tuple(f"{_STATE}{kind}/*" for kind in _KINDS)):
            added.append({"Fn::Sub": text.replace(_STATE, f"{_STATE}streams/*/")})
        elif isinstance(text, str) and text.endswith("/${OutputPrefix}/_table/*"):
            added.append({"Fn::Sub": text.replace("/_table/", "/*/_table/")})
        elif isinstance(text, str) and text.endswith(":job/${JobName}"):
            added.append({"Fn::Sub": f"{text}-*"})
    return [*places, *added] if added else place


def _events_table(table: Document, stream: Settings) -> Document:
    output = stream.paths.output.removeprefix("s3://").partition("/")[2]
    found: Document = copied(table, OutputPrefix=output, OutputFolder=stream.output.folder.format(date="${!file_date}"))
    found["Properties"]["TableInput"]["Name"] = _tables_of(stream)[0]
    return found


def _rejects_table(table: Document, stream: Settings) -> Document:
    found: Document = copied(table, StatePrefix=f"${{StatePrefix}}/streams/{stream.name}")
    found["Properties"]["TableInput"]["Name"] = _tables_of(stream)[1]
    return found


def _rules(template: Document, stream: Settings) -> list[Document]:
    """The rules of expiry below the state, for the state of a stream."""
    rules = template["Resources"]["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    return [
        {**copied(rule, StatePrefix=f"${{StatePrefix}}/streams/{stream.name}"), "Id": f"{rule['Id']}-{stream.name}"}
        for rule in rules
        if _STATE in json.dumps(rule.get("Prefix", ""))
    ]


def _jobs(job: Document, stream: Settings) -> Document:
    """The job of a stream that has its own."""
    if not _has_own_job(stream):
        return {}
    found: Document = json.loads(json.dumps(job))
    found["Properties"]["Name"] = _job_name(stream)
    found["Properties"]["DefaultArguments"]["--STREAM"] = stream.name
    return {logical_id("Job", stream): found}


def _has_own_job(stream: Settings) -> bool:
    return stream.member is not None and stream.member.stream.job == "own"


def _job_name(stream: Settings) -> Document:
    return {"Fn::Sub": f"${{JobName}}-{stream.name}"}


def _alarms(alarms: Document, stream: Settings) -> Iterator[tuple[str, Document]]:
    """The alarms of a stream: all that its own job has, or those that other streams would hide."""
    is_own = _has_own_job(stream)
    for name, alarm in alarms.items():
        if name in _OF_QUEUE if is_own else name not in _OF_STREAM:
            continue
        found: Document = json.loads(json.dumps(alarm))
        properties = found["Properties"]
        alarm_name = properties["AlarmName"]["Fn::Sub"]
        properties["AlarmName"] = {"Fn::Sub": alarm_name.replace("${JobName}", f"${{JobName}}-{stream.name}")}
        threshold = properties.get("Threshold", {})
        if isinstance(threshold, dict) and (share := _THRESHOLDS.get(threshold.get("Ref", ""))):
            properties["Threshold"] = stream.control.sla_seconds * share
        for dimensions in dimensions_of(found):
            if is_own:
                dimensions[0]["Value"] = _job_name(stream)
            else:
                dimensions.append({"Name": "Stream", "Value": stream.name})
        yield logical_id(name, stream), found


def dimensions_of(node: Any) -> Iterator[list[Document]]:
    """The lists of dimensions of an alarm, also those of its expressions."""
    if isinstance(node, dict):
        for key, each in node.items():
            if key == "Dimensions":
                yield each
            else:
                yield from dimensions_of(each)
    elif isinstance(node, list):
        for each in node:
            yield from dimensions_of(each)


def _unrouted(alarm: Document) -> Document:
    """The alarm about files that no stream has."""
    found: Document = json.loads(json.dumps(alarm))
    found["Properties"] |= {
        "AlarmName": {"Fn::Sub": "${JobName}-files-unrouted"},
        "AlarmDescription": {
            "Fn::Sub": "Announced files match no stream's prefix, so no manifest has them. Run aws logs tail "
            "/aws/lambda/${JobName}-manifest-builder --since 1h --filter-pattern files.unrouted, add a stream or "
            "correct its prefixes, then run compactor plan."
        },
        "MetricName": "FilesUnrouted",
    }
    return found
