"""The template of several streams: tables, rules of expiry, alarms and jobs of each, beside what all have together.

Of the resources that a stream has for itself, none depends on another stream. What all streams have together names
streams by patterns only, except for the work bucket, whose rules of expiry cannot have patterns, and schema files.
"""

import json
from collections.abc import Iterator
from typing import Any

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings
from deploy.dashboard import with_stream_widgets
from deploy.resolved import Document
from deploy.stack_parameters import OF_ONE_STREAM
from deploy.stream_faults import has_own_job, tables_of
from deploy.stream_role import SPARK_UI, own_role
from deploy.template_nodes import copied, dimensions_of, statements_of

MAX_RESOURCES = 500
"""The most resources of a stack [CloudFormation quotas]."""

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
    roles = ["JobRole"]
    for stream in settings.streams:
        resources[logical_id("EventsTable", stream)] = _events_table(events, stream)
        resources[logical_id("RejectsTable", stream)] = _rejects_table(rejects, stream)
        if has_own_job(stream):
            role_id = logical_id("JobRole", stream)
            resources[logical_id("Job", stream)] = _job(resources["Job"], stream, role_id)
            resources[role_id] = own_role(template["Resources"]["JobRole"], stream)
            roles.append(role_id)
        resources.update(_alarms(alarms, stream))
        resources["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"] += _rules(template, stream)
    changed["Outputs"]["JobRoleArn"]["Value"] = {"Fn::Sub": ",".join(f"${{{each}.Arn}}" for each in roles)}
    dashboard = resources["Dashboard"]["Properties"]["DashboardBody"]
    dashboard["Fn::Sub"] = with_stream_widgets(dashboard["Fn::Sub"])
    resources["FilesUnroutedAlarm"] = _unrouted(alarms["FilesMisdatedAlarm"])
    if len(resources) > MAX_RESOURCES:
        raise SettingsError(
            [f"streams: {len(resources)} resources -> expected at most {MAX_RESOURCES}: use fewer streams"]
        )
    return changed


def logical_id(kind: str, stream: Settings) -> str:
    """The name of a resource of a stream in the template, of letters and digits only. No name has a capital letter."""
    return f"{kind}Of{stream.name.replace('-', 'Z')}"


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
    found["Properties"]["TableInput"]["Name"] = tables_of(stream)[0]
    return found


def _rejects_table(table: Document, stream: Settings) -> Document:
    found: Document = copied(table, StatePrefix=f"${{StatePrefix}}/streams/{stream.name}")
    found["Properties"]["TableInput"]["Name"] = tables_of(stream)[1]
    return found


def _rules(template: Document, stream: Settings) -> list[Document]:
    """The rules of expiry below the state, for the state of a stream."""
    rules = template["Resources"]["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    return [
        {**copied(rule, StatePrefix=f"${{StatePrefix}}/streams/{stream.name}"), "Id": f"{rule['Id']}-{stream.name}"}
        for rule in rules
        if _STATE in json.dumps(rule.get("Prefix", ""))
    ]


def _job(job: Document, stream: Settings, role_id: str) -> Document:
    """The job of a stream that has its own, under its own role."""
    found: Document = json.loads(json.dumps(job).replace(SPARK_UI, f"{SPARK_UI}{stream.name}/"))
    found["Properties"]["Name"] = _job_name(stream)
    found["Properties"]["Role"] = {"Fn::GetAtt": [role_id, "Arn"]}
    found["Properties"]["DefaultArguments"]["--STREAM"] = stream.name
    return found


def _job_name(stream: Settings) -> Document:
    return {"Fn::Sub": f"${{JobName}}-{stream.name}"}


def _alarms(alarms: Document, stream: Settings) -> Iterator[tuple[str, Document]]:
    """The alarms of a stream: all that its own job has, or those that other streams would hide."""
    is_own = has_own_job(stream)
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
        if is_own:
            about = properties["AlarmDescription"]
            properties["AlarmDescription"] = addressed(about, f"--stream {stream.name}", _job_name(stream)["Fn::Sub"])
        for dimensions in dimensions_of(found):
            if is_own:
                dimensions[0]["Value"] = _job_name(stream)
            else:
                dimensions.append({"Name": "Stream", "Value": stream.name})
        yield logical_id(name, stream), found


def addressed(about: Any, option: str, job: str) -> Any:
    """The text of an alarm, whose commands are about the job of one stream or shard."""
    if not isinstance(about, dict):
        return about
    text = about["Fn::Sub"].replace("job check", f"job check {option}")
    return {"Fn::Sub": text.replace("--job-name ${JobName}", f"--job-name {job}")}


def _unrouted(alarm: Document) -> Document:
    """The alarm about files that no stream has."""
    found: Document = json.loads(json.dumps(alarm))
    found["Properties"] |= {
        "AlarmName": {"Fn::Sub": "${JobName}-files-unrouted"},
        "AlarmDescription": {
            "Fn::Sub": "Announced files match no stream's prefix, so no manifest has them. `aws logs tail "
            "/aws/lambda/${JobName}-manifest-builder --since 1h --filter-pattern '\"files.unrouted\"'` names them. Add "
            "a stream or correct its prefixes, then run `compactor plan PREFIX`."
        },
        "MetricName": "FilesUnrouted",
    }
    return found
