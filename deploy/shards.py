"""The template of several jobs that share the manifests: a job for each shard, and the alarms that name it."""

import json
from typing import Any

from compactor.core.errors import SettingsError
from compactor.core.rules.sharding import Shard
from compactor.settings.settings import Settings
from deploy.streams import MAX_RESOURCES, addressed
from deploy.template_nodes import dimensions_of, statements_of

Document = dict[str, Any]

_OF_SHARD = ("NoHeartbeatAlarm", "CrashLoopAlarm", "LongBatchesAlarm", "OldestManifestAgeAlarm")
"""Alarms about what other shards would hide in a common metric."""


def with_shards(template: Document, settings: Settings) -> Document:
    """A copy of the template for as many jobs as the settings ask for; the same for one job.

    The first shard has the job that one job alone has, under the same name, so that a change of their number replaces
    no job.

    Raises:
        SettingsError: There are more jobs than a stack can hold.
    """
    shards = [each.shard for each in settings.by_shard if each.shard]
    if not shards:
        return template
    changed: Document = json.loads(json.dumps(template))
    resources = changed["Resources"]
    job, alarms = resources["Job"], {name: resources[name] for name in _OF_SHARD}
    for shard in shards:
        resources["Job" if shard.number == 1 else f"JobOfShard{shard.number}"] = _job(job, shard)
        resources.update((f"{name}OfShard{shard.number}", _alarm(each, shard)) for name, each in alarms.items())
    for statement in statements_of(list(resources.values())):
        statement["Resource"] = _reaching(statement["Resource"])
    names = resources["JobStateRule"]["Properties"]["EventPattern"]["detail"]["jobName"]
    names.append({"prefix": {"Fn::Sub": "${JobName}-shard-"}})
    if len(resources) > MAX_RESOURCES:
        found = f"{len(resources)} resources -> expected at most {MAX_RESOURCES}: use fewer shards"
        raise SettingsError([f"control.shards: {found}"])
    return changed


def _job(job: Document, shard: Shard) -> Document:
    made: Document = json.loads(json.dumps(job))
    made["Properties"]["DefaultArguments"]["--SHARD"] = str(shard)
    if shard.number > 1:
        made["Properties"]["Name"] = {"Fn::Sub": f"${{JobName}}-shard-{shard.number}"}
    return made


def _alarm(alarm: Document, shard: Shard) -> Document:
    """The alarm about one shard."""
    made: Document = json.loads(json.dumps(alarm))
    properties, name = made["Properties"], f"shard-{shard.number}"
    alarm_name = properties["AlarmName"]["Fn::Sub"].replace("${JobName}", f"${{JobName}}-{name}")
    properties["AlarmName"] = {"Fn::Sub": alarm_name}
    job = "${JobName}" if shard.number == 1 else f"${{JobName}}-{name}"
    about = addressed(properties["AlarmDescription"], f"--shard {shard}", job)
    text = f"Shard {shard}: {about['Fn::Sub'] if isinstance(about, dict) else about}"
    properties["AlarmDescription"] = {"Fn::Sub": text} if isinstance(about, dict) else text
    for dimensions in dimensions_of(made):
        dimensions.append({"Name": "Shard", "Value": str(shard.number)})
    return made


def _reaching(place: Any) -> Any:
    """The resources of a statement, with the jobs of all shards."""
    places = place if isinstance(place, list) else [place]
    texts = [each.get("Fn::Sub", "") for each in places if isinstance(each, dict)]
    jobs = [text for text in texts if isinstance(text, str) and text.endswith(":job/${JobName}")]
    return [*places, *({"Fn::Sub": f"{text}-shard-*"} for text in jobs)] if jobs else place
