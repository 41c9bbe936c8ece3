"""The stack of several jobs that share the manifests: a job and alarms of each, and roles that reach all of them."""

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint_file

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, parse_settings
from compactor.wiring.settings_files import job_arguments
from deploy.shards import with_shards
from deploy.stack_parameters import settings_parameters
from deploy.streams import with_streams
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template


def settings(shards: int, **more: Any) -> Settings:
    """The settings of production, for so many jobs."""
    document = tomllib.loads((ROOT / "config" / "prod.toml").read_text())
    document["control"]["shards"] = shards
    return parse_settings({**document, **more})


def streams(**jobs: str) -> dict[str, Any]:
    """Settings of streams, by the kinds of their jobs."""
    document = tomllib.loads((ROOT / "config" / "prod.toml").read_text())
    entries = []
    for name, job in jobs.items():
        where = {"allowed_prefixes": [f"s3://example-raw/{name}"]}
        schema = {"table": f"lake.{name.replace('-', '_')}"}
        entries.append({"name": name, "job": job, "input": where, "schema": schema})
    return {"input": {**document["input"], "allowed_prefixes": ["s3://example-raw"]}, "streams": entries}


@cache
def made(shards: int) -> str:
    document = with_shards(template(), settings(shards))
    return json.dumps(resources(document, {**parameters_of("prod"), **settings_parameters(settings(shards))}))


def stack(shards: int) -> dict[str, Document]:
    found: dict[str, Document] = json.loads(made(shards))
    return found


def test_one_job_has_the_template_as_it_is() -> None:
    """Nothing of several jobs is in it."""
    assert with_shards(template(), settings(1)) == template()


def test_each_shard_has_its_job() -> None:
    """With the name that its control plane watches, and its shard as an argument that the job reads."""
    jobs = [each["Properties"] for each in stack(4).values() if each["Type"] == "AWS::Glue::Job"]
    expected = {each.run_name: str(each.shard) for each in settings(4).by_shard}
    assert {each["Name"]: each["DefaultArguments"]["--SHARD"] for each in jobs} == expected
    for each in jobs:
        given = [word for pair in each["DefaultArguments"].items() for word in pair]
        assert job_arguments(["job.py", *map(str, given)])["SHARD"] == each["DefaultArguments"]["--SHARD"]
        assert each["ExecutionProperty"] == {"MaxConcurrentRuns": 1}


def test_a_change_of_their_number_replaces_no_job() -> None:
    """The jobs that stay get another argument and nothing else; CloudFormation changes that without an interruption."""
    before, after = stack(2), stack(4)
    assert {name for name in after.keys() - before.keys() if name.startswith("Job")} == {"JobOfShard3", "JobOfShard4"}
    for name in ("Job", "JobOfShard2"):
        for each in (before, after):
            del each[name]["Properties"]["DefaultArguments"]["--SHARD"]
        assert before[name] == after[name]


def test_alarms_name_the_shard() -> None:
    """What other shards would hide in a common metric is watched for each."""
    alarms = {
        each["Properties"]["AlarmName"]: each["Properties"]
        for each in stack(2).values()
        if each["Type"] == "AWS::CloudWatch::Alarm"
    }
    name = settings(2).control.job_name
    for kind in ("no-heartbeat", "crash-loop", "long-batches", "oldest-manifest"):
        for number in (1, 2):
            alarm = alarms[f"{name}-shard-{number}-{kind}"]
            assert alarm["Dimensions"][-1] == {"Name": "Shard", "Value": str(number)}
            assert alarm["AlarmDescription"].startswith(f"Shard {number}/2: ")
            if kind == "no-heartbeat":
                job = name if number == 1 else f"{name}-shard-{number}"
                assert f"job check --shard {number}/2 --dry-run" in alarm["AlarmDescription"]
                assert f"--job-name {job} " in alarm["AlarmDescription"]
        assert len(alarms[f"{name}-{kind}"]["Dimensions"]) == 2


def test_roles_and_rules_reach_every_job() -> None:
    """Wherever the job is named, those of shards are as well, and no other job."""
    found, name = stack(2), settings(2).control.job_name
    pattern = found["JobStateRule"]["Properties"]["EventPattern"]["detail"]["jobName"]
    assert pattern == [name, {"prefix": f"{name}-shard-"}]
    places = set(re.findall(r'"([^"]*:job/[^"]*)"', made(2)))
    assert {place.rpartition(":job/")[2] for place in places} == {name, f"{name}-shard-*"}


def test_streams_that_share_the_jobs_keep_theirs() -> None:
    """A stream with a job of its own has one, however many shards there are."""
    found = settings(2, **streams(orders="shared", clicks="own"))
    made = with_shards(with_streams(template(), found), found)["Resources"]
    jobs = {name for name, each in made.items() if each["Type"] == "AWS::Glue::Job"}
    assert jobs == {"Job", "JobOfShard2", "JobOfclicks"}
    assert "--SHARD" not in made["JobOfclicks"]["Properties"]["DefaultArguments"]


def test_a_stream_may_not_take_the_name_of_a_shard() -> None:
    """Both would be one job."""
    with pytest.raises(SettingsError, match="would have the name of a shard"):
        settings(2, **streams(**{"shard-2": "own"}))
    assert settings(1, **streams(**{"shard-2": "own"})).streams


@pytest.mark.large
def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    """The linter accepts the template of several jobs."""
    path = tmp_path / "template.json"
    path.write_text(json.dumps(with_shards(template(), settings(4))))
    assert [str(match) for match in lint_file(path)] == []
