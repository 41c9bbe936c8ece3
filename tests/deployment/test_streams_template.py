"""The stack of several streams: each has its own tables, alarms and rules, and a further one touches none of them."""

import json
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint_file

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, parse_settings
from compactor.telemetry.metrics import (
    CATALOGUE,
    ONLY_OF_LOGS,
    ONLY_OF_PARTITIONS,
    ONLY_OF_STREAMS,
)
from deploy.dashboard import WIDGETS, with_alarms
from deploy.stack_parameters import settings_parameters, stack_parameters
from deploy.streams import MAX_RESOURCES, logical_id, with_streams
from tests.deployment.drift import metrics_of, widgets
from tests.deployment.permissions import statements
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template

NAMES = ("orders", "page-views", "clicks")


def entry(name: str, **more: Any) -> dict[str, Any]:
    where = {"input": {"allowed_prefixes": [f"s3://example-raw/{name}"]}}
    return {"name": name, **where, "schema": {"table": f"lake.{name.replace('-', '_')}"}, **more}


def settings_of(*entries: dict[str, Any], **sections: dict[str, Any]) -> Settings:
    """The settings of production, for streams; `sections` change keys at the top."""
    document = tomllib.loads((ROOT / "config" / "prod.toml").read_text())
    document["input"]["allowed_prefixes"] = ["s3://example-raw"]
    changed = {name: {**document.get(name, {}), **keys} for name, keys in sections.items()}
    return parse_settings({**document, **changed, "streams": list(entries)})


@cache
def settings() -> Settings:
    return settings_of(entry("orders"), entry("page-views", control={"sla_seconds": 120}), entry("clicks", job="own"))


def parameters(found: Settings, document: Document) -> dict[str, str]:
    given = {**parameters_of("prod"), **settings_parameters(found)}
    return {name: value for name, value in given.items() if name in document["Parameters"]}


@cache
def _made() -> str:
    document = with_streams(template(), settings())
    return json.dumps(resources(document, parameters(settings(), document)))


def made() -> dict[str, Document]:
    found: dict[str, Document] = json.loads(_made())
    return found


def stream(name: str) -> Settings:
    return settings().of_stream(name)


def test_without_streams_nothing_changes() -> None:
    """One stream stays as simple as it was."""
    document = tomllib.loads((ROOT / "config" / "prod.toml").read_text())
    assert with_streams(template(), parse_settings(document)) == template()


def test_a_further_stream_touches_no_resource_of_the_others() -> None:
    """It adds resources, and to what all have together only rules of expiry for its own places."""
    new = entry("returns", job="own", input={"allowed_prefixes": ["s3://example-raw/orders/returns"]})
    entries = [entry("orders"), entry("page-views"), entry("clicks", job="own")]
    before, after = (with_streams(template(), settings_of(*each)) for each in (entries, [*entries, new]))
    assert before["Parameters"] == after["Parameters"]
    assert parameters(settings_of(*entries), before) == parameters(settings_of(*entries, new), after)
    added = after["Resources"].keys() - before["Resources"].keys()
    assert all(name.endswith("Ofreturns") for name in added)
    assert {"JobOfreturns", "EventsTableOfreturns", "RejectsTableOfreturns", "NoHeartbeatAlarmOfreturns"} <= added
    changed = {name for name, each in before["Resources"].items() if after["Resources"][name] != each}
    assert changed == {"WorkBucket"}
    rules = [
        each["Resources"]["WorkBucket"]["Properties"].pop("LifecycleConfiguration")["Rules"] for each in (before, after)
    ]
    assert before["Resources"]["WorkBucket"] == after["Resources"]["WorkBucket"]
    assert rules[1][: len(rules[0])] == rules[0]
    assert all(rule["Id"].endswith("-returns") for rule in rules[1][len(rules[0]) :])


@pytest.mark.parametrize("name", NAMES)
def test_tables_read_the_places_of_their_stream(name: str) -> None:
    """Rows and rejects of a stream are tables of its own."""
    layout, found = stream(name).layout(), made()
    for kind, place in (
        ("EventsTable", layout.output_folder_of("${file_date}")),
        ("RejectsTable", layout.rejects_folder_of("${file_date}")),
    ):
        table = found[logical_id(kind, stream(name))]["Properties"]["TableInput"]
        assert table["Parameters"]["storage.location.template"] == place
    names = [each["Properties"]["TableInput"]["Name"] for each in found.values() if each["Type"] == "AWS::Glue::Table"]
    assert sorted(names) == sorted(f"{each.replace('-', '_')}{end}" for each in NAMES for end in ("", "_rejects"))


@pytest.mark.parametrize("name", NAMES)
def test_what_expires_without_streams_expires_in_each(name: str) -> None:
    """The rules of the state hold for the state of each stream as well, and nothing of its ledger expires."""
    rules = made()["WorkBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    state = stream("orders").claims_layout.state.partition("s3://")[2].partition("/")[2]
    common = {rule["Prefix"].removeprefix(state) for rule in rules if rule.get("Prefix", "").startswith(f"{state}/")}
    own = {each.removeprefix(f"/streams/{name}") for each in common if each.startswith(f"/streams/{name}/")}
    assert own == {each for each in common if not each.startswith("/streams/")} - {"/pending/"}  # it has that of all
    assert len({rule["Id"] for rule in rules}) == len(rules) < 1000  # S3's limit


@pytest.mark.parametrize("name", NAMES)
def test_roles_reach_the_places_of_each_stream(name: str) -> None:
    """Functions and job may do in the places of a stream what they may do without streams."""
    layout, found = stream(name).layout(), made()
    needed = {
        "BuilderRole": {
            "s3:GetObject": [layout.accepted("m"), layout.recent(1), layout.manifest("m"), layout.pending_part("m")],
            "s3:PutObject": [layout.accepted("m"), layout.manifest("m"), layout.pending_part("m")],
        },
        "SealerRole": {
            "s3:PutObject": [layout.accepted("m"), layout.manifest("m")],
            "s3:DeleteObject": [layout.pending_part("m"), layout.manifest("m")],
        },
        "ControlRole": {
            "s3:GetObject": [
                layout.recent(1),
                layout.run("r"),
                layout.notices,
                layout.breaker_closed,
                layout.landing_progress("kafka", "c/t"),
            ],
            "s3:PutObject": [layout.notices, layout.breaker_closed, layout.job_seen, layout.stop_request("r")],
        },
        "JobRoleOfclicks" if name == "clicks" else "JobRole": {
            "s3:GetObject": [f"{stream(name).input.allowed_prefixes[0]}/a", layout.schema(1)],
            "s3:PutObject": [f"{layout.output_folder_of('2026-01-01')}a", layout.schema(1), layout.run("r")],
            "s3:DeleteObject": [
                layout.manifest("m"),
                f"{layout.staging_of_attempt('m', 1)}a",
                f"{layout.merged_folder}a",
            ],
        },
    }
    for role, actions in needed.items():
        for action, places in actions.items():
            allowed = [each for _, granted, each, _ in statements(found[role]) if action in granted]
            for place in places:
                arn = f"arn:aws:s3:::{place.removeprefix('s3://')}"
                assert any(fnmatchcase(arn, each) for group in allowed for each in group), (role, action, place)


def test_each_stream_is_watched() -> None:
    """A stream of the shared job has alarms that others cannot hide; one with its own job has all alarms of a job."""
    alarms = {name: each["Properties"] for name, each in made().items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    orders = {name.removesuffix("Oforders") for name in alarms if name.endswith("Oforders")}
    assert orders == {"OldestManifestAgeAlarm", "NoHeartbeatAlarm", "SealerAlarm"}
    late = alarms[logical_id("OldestManifestAgeAlarm", stream("page-views"))]
    assert late["Threshold"] == 120
    assert {each["Name"]: each["Value"] for each in late["Dimensions"]}["Stream"] == "page-views"
    own = {name.removesuffix("Ofclicks") for name in alarms if name.endswith("Ofclicks")}
    common = {name for name in alarms if "Of" not in name}
    assert common - own == {"EventsDeadLetteredAlarm", "QueueAgeAlarm", "FilesUnroutedAlarm"}
    watched = {metric for where, _, metric, _ in metrics_of(made()) if where in alarms and metric in CATALOGUE}
    assert watched == {name for name, metric in CATALOGUE.items() if metric.alarm != "none"}  # sent for alarms alone
    job_name = stream("clicks").control.job_name
    for name in own:
        assert f'"{job_name}"' in json.dumps(alarms[f"{name}Ofclicks"])
    assert made()["JobOfclicks"]["Properties"]["Name"] == job_name
    names = [each["AlarmName"] for each in alarms.values()]
    assert len(names) == len(set(names))
    assert all(name.startswith(f"{settings().control.job_name}-") for name in names)  # which may write to the topic


def test_the_dashboard_has_a_line_for_each_stream() -> None:
    """Widgets find the metrics of every stream by the dimensions that are emitted, and overlap none of the others."""
    found = widgets(made())
    searched = [each for each in found if "SEARCH" in json.dumps(each)]
    assert len(searched) == len(WIDGETS)
    for widget, (title, metric, statistic) in zip(searched, WIDGETS, strict=True):
        [[line]] = widget["properties"]["metrics"]
        terms = f'{{"Compactor/prod",Job,Environment,Stream}} MetricName="{metric}" Environment="prod"'
        assert line == {"expression": f"SEARCH('{terms}', '{statistic}', 60)", "label": "${PROP('Dim.Stream')}"}
        assert metric in CATALOGUE
        assert widget["properties"]["title"] == title
    cells = [
        (x, y)
        for each in found
        for x in range(each["x"], each["x"] + each["width"])
        for y in range(each["y"], each["y"] + each["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_the_dashboard_shows_every_alarm() -> None:
    """Those of streams and shards, too, above all other widgets; a widget has 100 at most."""
    for names in (("orders",), tuple(f"s{number}" for number in range(35))):
        found = settings_of(*(entry(name) for name in names))
        document = with_alarms(with_streams(template(), found))
        stack = resources(document, parameters(found, document))
        alarms = [
            each["Properties"]["AlarmName"] for each in stack.values() if each["Type"] == "AWS::CloudWatch::Alarm"
        ]
        boxes = [each for each in widgets(stack) if each["type"] == "alarm"]
        shown = [arn.rpartition(":alarm:")[2] for each in boxes for arn in each["properties"]["alarms"]]
        assert shown == alarms
        assert max(len(each["properties"]["alarms"]) for each in boxes) <= 100
        others = [each for each in widgets(stack) if each["type"] != "alarm"]
        assert max(each["y"] + each["height"] for each in boxes) == min(each["y"] for each in others)


def test_the_control_plane_reaches_the_jobs_of_single_streams() -> None:
    """It hears of their runs, and may start and stop them, and no job of another deployment."""
    found, own = made(), stream("clicks").control.job_name
    rule = found["JobStateRule"]["Properties"]["EventPattern"]["detail"]["jobName"]
    assert rule == [settings().control.job_name, {"prefix": f"{settings().control.job_name}-"}]
    [jobs] = [each for sid, _, each, _ in statements(found["ControlRole"]) if sid == "RunTheJob"]
    assert [each.rpartition(":")[2] for each in jobs] == [
        "job/" + own.removesuffix("-clicks") + end for end in ("", "-*")
    ]
    arguments, of_all = (found[name]["Properties"]["DefaultArguments"] for name in ("JobOfclicks", "Job"))
    spark_ui = of_all["--spark-event-logs-path"]
    assert arguments == {**of_all, "--STREAM": "clicks", "--spark-event-logs-path": f"{spark_ui}clicks/"}


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([entry("orders", schema={"table": ""})], "a table for each stream"),
        ([entry("orders"), entry("clicks", schema={"table": "other.clicks"})], "all of one database"),
        ([entry("orders", job="own")], 'job = "shared"'),
        ([entry("orders", paths={"output": "s3://elsewhere/orders"})], "a place within"),
        ([entry("a", schema={"table": "lake.b_rejects"}), entry("b")], "table b_rejects"),
    ],
)
def test_streams_that_the_stack_does_not_support_are_refused(entries: list[dict[str, Any]], fault: str) -> None:
    """The deployment says what it expected before it calls AWS."""
    with pytest.raises(SettingsError, match=fault):
        settings_parameters(settings_of(*entries))


def test_a_queue_that_no_job_would_read_is_refused() -> None:
    """The jobs of streams wait for no queue."""
    url = f"https://sqs.eu-central-1.amazonaws.com/123456789012/{settings().control.job_name}-manifests"
    with pytest.raises(SettingsError, match=r"stream\.queue_url -> expected empty"):
        settings_parameters(settings_of(entry("orders"), stream={"queue_url": url}))


def test_more_streams_than_a_stack_holds_are_refused() -> None:
    """CloudFormation takes 500 resources."""
    with pytest.raises(SettingsError, match="at most 500"):
        with_streams(template(), settings_of(entry("first"), *(entry(f"s{number}", job="own") for number in range(35))))


@pytest.mark.large
def test_cfn_lint_finds_nothing(tmp_path: Path) -> None:
    """The linter accepts the template of several streams."""
    document = with_streams(template(), settings())
    stack_parameters(document, parameters(settings(), document))
    path = tmp_path / "template.json"
    path.write_text(json.dumps(document))
    assert [str(match) for match in lint_file(path)] == []


def test_the_document_has_the_numbers() -> None:
    """What a stream costs and how many a stack holds, as `docs/streams.md` says."""
    text = " ".join((ROOT / "docs" / "streams.md").read_text().split())
    of_job = {"DeadLetterDepth", "JobState", "MetricsDropped", "QueueDepth", "QueueOldestAgeSeconds", "Restarts"}
    of_job |= {name for name in CATALOGUE if name.startswith("EstimatedDollars")}
    metrics = len(CATALOGUE) - len(of_job | ONLY_OF_STREAMS | ONLY_OF_PARTITIONS | ONLY_OF_LOGS)
    before, after = (with_streams(template(), settings_of(*each)) for each in ([entry("a")], [entry("a"), entry("b")]))
    added = len(after["Resources"]) - len(before["Resources"])
    alarms = sum(name.endswith("AlarmOfb") for name in after["Resources"])
    dollars = metrics * 0.30 + alarms * 0.10
    assert f"up to {metrics} metrics and {alarms} alarms of its own: about ${dollars:.2f} a month" in text
    own = with_streams(template(), settings_of(entry("a"), entry("b", job="own")))
    room, added_own = MAX_RESOURCES - len(before["Resources"]), len(own["Resources"]) - len(before["Resources"])
    assert f"about {room // added // 5 * 5} streams, or {room // added_own // 5 * 5} with jobs of their own" in text


def test_the_streams_of_kinesis() -> None:
    """What the streams name counts; at the top of the file stands the whole source."""
    document = tomllib.loads((ROOT / "config" / "prod.toml").read_text())
    document["input"]["allowed_prefixes"] = ["s3://example-raw", "kinesis://main"]
    entries = [entry(name, input={"allowed_prefixes": [f"kinesis://main/shop-{name}"]}) for name in NAMES[:2]]
    found = parse_settings({**document, "kinesis": {"sources": {"main": {}}}, "streams": entries})
    assert settings_parameters(found)["KinesisStreams"] == f"shop-{NAMES[0]},shop-{NAMES[1]}"


def test_alarms_about_a_job_of_one_stream_have_its_commands() -> None:
    """The operator sees and stops this job, and not that of the other streams."""
    found = settings_of(entry("orders", job="own"), entry("clicks"))
    document = with_streams(template(), found)
    alarms = [
        each["Properties"]
        for each in resources(document, parameters(found, document)).values()
        if each["Type"] == "AWS::CloudWatch::Alarm"
    ]
    about = {each["AlarmName"]: each["AlarmDescription"] for each in alarms}
    name = found.control.job_name
    assert "job check --stream orders --dry-run" in about[f"{name}-orders-no-heartbeat"]
    assert f"--job-name {name}-orders " in about[f"{name}-orders-no-heartbeat"]
    assert f"--job-name {name} " in about[f"{name}-no-heartbeat"]
