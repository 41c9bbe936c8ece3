"""The values of the template fit each other and the settings."""

import json
import re
from typing import Any

import pytest

from compactor.adapters.iceberg import opening
from compactor.core.layout import Layout
from compactor.job import table_commits
from compactor.settings.settings import Settings, load_settings
from compactor.table import applying
from compactor.telemetry.metrics import CATALOGUE, ONLY_OF_STREAMS
from tests.deployment.drift import metrics_of, widgets
from tests.deployment.permissions import allows
from tests.deployment.resolving import ROOT, Document, parameters_of, resources, template

ENVIRONMENTS = sorted(path.stem for path in (ROOT / "deploy" / "parameters").glob("*.json"))
ROWS = ["Backlog", "Throughput", "Latency", "Quality", "Files", "Job", "Cost"]


@pytest.fixture(params=ENVIRONMENTS)
def deployed(request: pytest.FixtureRequest) -> str:
    """The name of each environment in turn."""
    return str(request.param)


@pytest.fixture
def found(deployed: str) -> dict[str, Document]:
    return resources(template(), parameters_of(deployed))


@pytest.fixture
def settings(deployed: str) -> Settings:
    return load_settings(ROOT / "config" / f"{deployed}.toml", {})


def properties(found: dict[str, Document], name: str) -> Any:
    return found[name]["Properties"]


def test_one_run_and_one_restarter(found: dict[str, Document]) -> None:
    """Glue runs the job once at a time and never restarts it; the timeout is below Glue's limit."""
    job = properties(found, "Job")
    assert job["ExecutionProperty"] == {"MaxConcurrentRuns": 1}
    assert job["MaxRetries"] == 0
    assert 0 < int(job["Timeout"]) < 7 * 24 * 60
    assert job["Command"]["Name"] == "gluestreaming"


@pytest.mark.parametrize(
    ("version", "there", "absent"),
    [
        ("6.0", {"--python-modules-installer-option"}, {"--extra-py-files"}),
        ("5.1", {"--extra-py-files"}, {"--python-modules-installer-option"}),
    ],
)
def test_how_each_glue_version_gets_the_package(version: str, there: set[str], absent: set[str]) -> None:
    """Each version of Glue gets the package and its dependencies by its own arguments."""
    found = resources(template(), parameters_of("prod") | {"GlueVersion": version})
    arguments = properties(found, "Job")["DefaultArguments"]
    assert there | {"--additional-python-modules"} <= arguments.keys()
    assert not absent & arguments.keys()


def test_glue_keeps_its_own_files(found: dict[str, Document]) -> None:
    """The job's role may do in the folder that Glue fills what any way of filling it needs.

    The documents do not list the rights for the logs of the Spark UI, so none of them is left out.
    """
    place = properties(found, "Job")["DefaultArguments"]["--spark-event-logs-path"]
    arn = f"arn:aws:s3:::{place.removeprefix('s3://')}x"
    for action in ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"):
        assert allows(found["JobRole"], action, arn), action
    assert allows(found["JobRole"], "s3:ListBucket", arn.partition("/")[0])


@pytest.mark.parametrize("version", ["6.0", "5.1"])
def test_no_process_may_write_what_later_runs_start_with(version: str) -> None:
    """A process that is taken over cannot leave code or settings for the next run: all lie where no role can write."""
    found = resources(template(), parameters_of("prod") | {"GlueVersion": version})
    job = properties(found, "Job")
    arguments = {name: text for name, text in job["DefaultArguments"].items() if name != "--spark-event-logs-path"}
    places = [each for text in (job["Command"]["ScriptLocation"], *arguments.values()) for each in str(text).split(",")]
    starts_with = [each.removeprefix("s3://") for each in places if each.startswith("s3://")]
    assert len(starts_with) > 2
    roles = {name: each for name, each in found.items() if each["Type"] == "AWS::IAM::Role"}
    assert "JobRole" in roles
    for name, role in roles.items():
        for action in ("s3:PutObject", "s3:DeleteObject"):
            assert not [each for each in starts_with if allows(role, action, f"arn:aws:s3:::{each}")], (name, action)


@pytest.mark.parametrize(
    ("window", "timeout", "sent"),
    [
        ("", "10079", ["Timeout"]),
        ("Sun:10", "10079", ["MaintenanceWindow"]),
        ("Sun:10", "0", ["MaintenanceWindow"]),
        ("", "0", []),
    ],
)
def test_a_window_excludes_a_timeout(window: str, timeout: str, sent: list[str]) -> None:
    """Whatever the parameters, Glue never gets both, for a window says nothing of a run with a timeout.

    "If the timeout is less than 7 days, then the job will not be restarted" ["Maintenance windows for AWS Glue
    Streaming"].
    """
    given = parameters_of("prod") | {"MaintenanceWindow": window, "JobTimeoutMinutes": timeout}
    job = properties(resources(template(), given), "Job")
    assert [key for key in ("Timeout", "MaintenanceWindow") if key in job] == sent


@pytest.mark.parametrize("version", ["6.0", "5.1"])
def test_roles_may_read_what_they_start_with(deployed: str, version: str) -> None:
    """The roles of functions and job may read their settings, script and packages."""
    found = resources(template(), parameters_of(deployed) | {"GlueVersion": version})
    job = properties(found, "Job")
    places = {"JobRole": [job["Command"]["ScriptLocation"], *job["DefaultArguments"].values()]}
    for function in ("BuilderFunction", "SealerFunction", "ControlFunction"):
        variables = properties(found, function)["Environment"]["Variables"]
        places[properties(found, function)["Role"].removesuffix(".Arn")] = [variables["COMPACTOR_CONFIG"]]
    own = f"s3://{parameters_of(deployed)['ArtefactBucketName']}/"
    for role, named in places.items():
        read = [place for place in named if place.startswith(own)]
        assert read
        for place in read:
            assert allows(found[role], "s3:GetObject", f"arn:aws:s3:::{place.removeprefix('s3://')}"), (role, place)


def test_an_existing_bucket_notifies_by_event_bridge() -> None:
    """The stack does not change an existing bucket: a rule forwards its events, and the queue accepts them."""
    found = resources(template(), parameters_of("prod") | {"InputBucketIsNew": "no", "InputPrefix": "raw/"})
    assert "InputBucket" not in found
    rule = properties(found, "ExistingInputBucketRule")
    assert rule["EventPattern"]["detail"]["object"]["key"] == [{"prefix": "raw/"}]
    policy = json.dumps(properties(found, "EventQueuePolicy"))
    assert f"rule/{rule['Name']}" in policy


def test_a_new_bucket_notifies_the_queue() -> None:
    """A bucket that the stack creates notifies the queue of objects below the prefix, if one is set."""
    for prefix in ("", "raw/"):
        found = resources(template(), parameters_of("prod") | {"InputPrefix": prefix})
        assert "ExistingInputBucketRule" not in found
        [to_queue] = properties(found, "InputBucket")["NotificationConfiguration"]["QueueConfigurations"]
        assert to_queue["Queue"] == "EventQueue.Arn"
        assert ("Filter" in to_queue) is bool(prefix)


def test_no_message_returns_while_it_is_processed(found: dict[str, Document], settings: Settings) -> None:
    """Messages stay invisible for six builder timeouts plus the window.

    A claim's lease outlives the function that made it, and has ended long before the message of a builder that died
    comes back: the next call can take the file over, and does not have to wait once more. It comes back within the SLA.
    """
    builder, sealer, source, queue = (
        properties(found, name) for name in ("BuilderFunction", "SealerFunction", "BuilderEventSource", "EventQueue")
    )
    window = int(source["MaximumBatchingWindowInSeconds"])
    assert queue["VisibilityTimeout"] >= 6 * builder["Timeout"] + window
    assert queue["VisibilityTimeout"] < settings.control.sla_seconds
    assert (
        max(builder["Timeout"], sealer["Timeout"])
        < settings.claim_lease_seconds
        <= (queue["VisibilityTimeout"] - window) / 2
    )
    assert window < settings.builder.max_wait_seconds
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert 2 <= int(source["ScalingConfig"]["MaximumConcurrency"]) <= 1000
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == "DeadLetterQueue.Arn"


def test_one_sealer_and_one_control_plane(found: dict[str, Document]) -> None:
    """Sealer and control plane run once a minute, and their failed calls are kept."""
    for function, rule, calls in (
        ("SealerFunction", "SealerSchedule", "SealerCalls"),
        ("ControlFunction", "ControlSchedule", "ControlCalls"),
    ):
        assert properties(found, rule)["ScheduleExpression"] == "rate(1 minute)"
        assert properties(found, rule)["Targets"][0]["Arn"] == f"{function}.Arn"
        assert properties(found, calls)["DestinationConfig"]["OnFailure"]["Destination"] == "FailedCallsQueue.Arn"
    pattern = properties(found, "JobStateRule")["EventPattern"]
    assert pattern["detail"]["jobName"] == [properties(found, "Job")["Name"]]


def test_a_new_account_has_enough_concurrency(deployed: str) -> None:
    """No execution is reserved unless asked for: Lambda refuses what leaves fewer than 100 unreserved.

    A new account has fewer than that in all: "Lambda quotas" and PutFunctionConcurrency of AWS.
    """
    for wish, reserved in (("no", {}), ("yes", {"SealerFunction": 1, "ControlFunction": 1})):
        found = resources(template(), parameters_of(deployed) | {"ReserveConcurrency": wish})
        functions = {
            name: each["Properties"] for name, each in found.items() if each["Type"] == "AWS::Lambda::Function"
        }
        key = "ReservedConcurrentExecutions"
        assert {name: each[key] for name, each in functions.items() if key in each} == reserved


def test_two_stacks_fit_into_one_account() -> None:
    """No resource of one environment has the name of a resource of another, for CloudFormation could not create it."""
    names = [_names(resources(template(), parameters_of(environment))) for environment in ENVIRONMENTS]
    assert all(names)
    assert sorted(name for each in names for name in each) == sorted(set().union(*names))


def _names(found: dict[str, Document]) -> set[tuple[str, str]]:
    """Type and name of every resource that has a name."""
    named = re.compile(r"(Bucket|Queue|Table|Function|Topic|Role|LogGroup|Alarm|Dashboard|Job)?Name")
    return {
        (each["Type"], str(value))
        for each in found.values()
        for key, value in each.get("Properties", {}).items()
        if named.fullmatch(key)
        and each["Type"].rpartition("::")[2] not in {"EventSourceMapping", "EventInvokeConfig", "Permission"}
        and (key, each["Type"]) != ("DatabaseName", "AWS::Glue::Table")
    }


def test_what_is_deleted_can_be_restored(found: dict[str, Document], deployed: str) -> None:
    """The work bucket keeps older versions: for a day where the job deletes all the time, elsewhere for days."""
    bucket, given = properties(found, "WorkBucket"), parameters_of(deployed)
    assert bucket["VersioningConfiguration"] == {"Status": "Enabled"}
    kept = {
        rule.get("Prefix", ""): str(rule["NoncurrentVersionExpiration"]["NoncurrentDays"])
        for rule in bucket["LifecycleConfiguration"]["Rules"]
        if "NoncurrentVersionExpiration" in rule
    }
    assert kept.pop("") == given["RestoreDays"]
    state = given["StatePrefix"]
    scratch = ["open", "runs", "recent", "landing", "checkpoint"]
    places = [f"{given['ManifestsPrefix']}/", f"{given['PendingPrefix']}/", *(f"{state}/{name}/" for name in scratch)]
    assert kept == dict.fromkeys(places, "1")
    layout = Layout(manifests="s3://b/m", output="s3://b/o", state="s3://b/s")
    folders = [
        layout.open_folder,
        layout.runs_folder,
        layout.recent_folder,
        layout.landing_folder,
    ]
    assert [f"s3://b/s/{name}/" for name in scratch] == [*folders, layout.checkpoints_folder]
    assert "VersioningConfiguration" not in properties(found, "StagingBucket"), "all output passes through it"


def test_glues_own_metrics_are_not_bought(found: dict[str, Document]) -> None:
    """No alarm and no widget reads them, and CloudWatch bills each of them: the job sends its own."""
    assert not {"--enable-metrics", "--enable-observability-metrics"} & set(
        properties(found, "Job")["DefaultArguments"]
    )


def test_what_holds_data_stays(found: dict[str, Document]) -> None:
    """Buckets, event queues and claims outlive the stack, but not a first deployment that failed.

    Else their names would be taken when it is tried again: "DeletionPolicy attribute" of CloudFormation. Buckets are
    encrypted and block public access.
    """
    for name, each in found.items():
        if each["Type"] in {"AWS::S3::Bucket", "AWS::DynamoDB::Table"} or name in {"EventQueue", "DeadLetterQueue"}:
            policies = each["DeletionPolicy"], each["UpdateReplacePolicy"]
            assert policies == ("RetainExceptOnCreate", "Retain"), name
        if each["Type"] == "AWS::S3::Bucket":
            assert each["Properties"]["BucketEncryption"], name
            assert set(each["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}, name
    claims = properties(found, "ClaimsTable")
    assert claims["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert claims["KeySchema"] == [{"AttributeName": "pk", "KeyType": "HASH"}]
    assert claims["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_every_log_ends(found: dict[str, Document]) -> None:
    """The log groups of each function and of the job have a retention."""
    groups = {each["Properties"]["LogGroupName"] for each in found.values() if each["Type"] == "AWS::Logs::LogGroup"}
    functions = {
        each["Properties"]["FunctionName"] for each in found.values() if each["Type"] == "AWS::Lambda::Function"
    }
    job = properties(found, "Job")["DefaultArguments"]["--custom-logGroup-prefix"]
    assert groups == {f"/aws/lambda/{name}" for name in functions} | {f"{job}/output", f"{job}/error"}
    assert all(
        each["Properties"]["RetentionInDays"] for each in found.values() if each["Type"] == "AWS::Logs::LogGroup"
    )


def test_alarms_reach_the_topic(found: dict[str, Document]) -> None:
    """Metrics have the alarms that they say; alarms notify the topic of both changes and are on the dashboard."""
    alarms = {name: each["Properties"] for name, each in found.items() if each["Type"] == "AWS::CloudWatch::Alarm"}
    watched = {metric: alarms[where] for where, _, metric, _ in metrics_of(found) if where in alarms}
    watched = {metric: alarm for metric, alarm in watched.items() if metric in CATALOGUE}
    assert watched.keys() == {
        name for name, metric in CATALOGUE.items() if metric.alarm != "none" and name not in ONLY_OF_STREAMS
    }
    for metric, alarm in watched.items():  # one that is zero, and not sent, must not ring
        is_sent = CATALOGUE[metric].alarm == "absence"
        assert is_sent == (alarm["TreatMissingData"] != "notBreaching"), metric
        assert is_sent or alarm["ComparisonOperator"].startswith("GreaterThan"), metric
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == ["AlarmTopic"]
        # An alarm on silence would be one from its creation on if missing data were breaching.
        silence = alarm["TreatMissingData"] == "missing"
        assert alarm.get("InsufficientDataActions", []) == (["AlarmTopic"] if silence else []), alarm["AlarmName"]
    silent = {name for name, alarm in alarms.items() if alarm["TreatMissingData"] == "missing"}
    assert silent == {"NoHeartbeatAlarm", "SealerAlarm", "ControlPlaneAlarm"}
    assert "breaching" not in {alarm["TreatMissingData"] for alarm in alarms.values()}
    [shown] = [widget["properties"]["alarms"] for widget in widgets(found) if widget["type"] == "alarm"]
    assert {arn.rpartition(":")[2] for arn in shown} == {alarm["AlarmName"] for alarm in alarms.values()}


def test_the_alarm_about_the_table_does_not_flap(found: dict[str, Document]) -> None:
    """With a catalog that reads but hangs at each commit, so many periods have a failure that it stays an alarm."""
    alarm = properties(found, "TableBehindAlarm")
    longest = applying.TRIES * opening._ANSWER_SECONDS + table_commits.LONGEST_PAUSE_SECONDS
    seen = int(alarm["EvaluationPeriods"]) * int(alarm["Period"]) // (longest + 60)  # reads take time, too
    assert seen >= alarm["DatapointsToAlarm"]
    assert longest > alarm["Period"]  # or else each period had one


def test_dashboard(found: dict[str, Document]) -> None:
    """The dashboard's rows are in order, no widgets overlap, and every expression has its metrics."""
    all_widgets = widgets(found)
    rows = [widget["properties"]["markdown"].removeprefix("## ") for widget in all_widgets if widget["type"] == "text"]
    assert rows == ROWS
    cells = [
        (x, y)
        for widget in all_widgets
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    for widget in all_widgets:
        lines = widget["properties"].get("metrics", [])
        ids = {line[-1]["id"] for line in lines if "id" in line[-1]}
        words = {word for line in lines for word in re.findall(r"\b[a-z][a-z_]*", line[-1].get("expression", ""))}
        assert words <= ids


def test_settings_and_parameters_are_given_once(deployed: str) -> None:
    """Settings and the parameters file give every parameter exactly once."""
    given = json.loads((ROOT / "deploy" / "parameters" / f"{deployed}.json").read_text())
    known = template()["Parameters"]
    assert set(parameters_of(deployed)) == set(known)
    assert set(given) < set(known)


@pytest.mark.parametrize("table", ["", "sales/orders"])
def test_who_may_ask_lake_formation_for_data(table: str) -> None:
    """Those who read the Iceberg table in Glue, if there is one; Lake Formation gives what it was told to give."""
    found = resources(template(), {**parameters_of("prod"), "IcebergDatabase": "sales", "IcebergTable": table})
    for name in ("JobRole", "ReadOnlyPolicy"):
        assert ("lakeformation:GetDataAccess" in json.dumps(found[name])) is bool(table)
