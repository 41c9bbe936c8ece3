"""`compactor job smoke-test` on a stand-in for AWS, with the functions and the job as they are deployed."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.aws.clients import s3_client, sqs_client
from compactor.adapters.aws.local_setup import feed, make_buckets, make_claims_table, make_event_queue
from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.entry import compactor as command
from compactor.core.layout import KEEP_MARKER, base_name
from compactor.ops import canary as checker
from compactor.settings.settings import load_settings
from compactor.settings.toml import toml_of
from compactor.wiring import finding, operating, streaming
from compactor.wiring.app import App
from compactor.wiring.functions import build_messages, forget_clients, seal_parts
from compactor.wiring.operating import canary_checker
from deploy.resolved import Resolver, pseudo_parameters
from deploy.rights.check import check_statements
from tests.deployment.test_people import Iam, iam
from tests.support.aws_stand_in import REGION
from tests.support.fakes import PlainEngine

__all__ = ["iam"]  # a fixture

RAW, LAKE = "check-raw", "check-lake"
EARLY = "2000-01-01"


@dataclass
class Deployment:
    """A deployment on the stand-in, whose parts work while the context `at_work` is entered."""

    url: str
    queue_url: str
    folder: Path

    @property
    def app(self) -> App:
        return App(load_settings(self.folder / "config" / "dev.toml", {}))

    def listed(self) -> set[str]:
        s3 = s3_client(REGION, self.url)
        listed = [each for bucket in (RAW, LAKE) for each in s3.list_objects_v2(Bucket=bucket).get("Contents", ())]
        return {each["Key"] for each in listed}

    def step(self, *, with_job: bool = True) -> None:
        """What the event source, the schedule and the job do now and then."""
        feed(sqs_client(REGION, self.url), self.queue_url, lambda event, _: build_messages(event))
        seal_parts()
        if with_job:
            app = self.app
            source = ListedManifests(app.store, app.layout.manifests_folder)
            engine = PlainEngine(app.store, metadata_columns=app.settings.metadata_columns)
            streaming.service_on(app, engine, source).run(once=True)

    @contextmanager
    def at_work(self, *, with_job: bool = True) -> Iterator[None]:
        stopping = Event()

        def work() -> None:
            while not stopping.wait(0.3):
                self.step(with_job=with_job)

        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()

    def check(self, *arguments: str) -> Result:
        return CliRunner().invoke(command, ["job", "smoke-test", "config/dev.toml", *arguments])


@pytest.fixture
def deployment(aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    s3 = s3_client(REGION, aws_endpoint)
    existing = {each["Name"] for each in s3.list_buckets()["Buckets"]}
    if RAW not in existing:
        make_buckets([RAW, LAKE], region=REGION, endpoint_url=aws_endpoint)
        make_claims_table(LAKE, region=REGION, endpoint_url=aws_endpoint)
    queue_url = make_event_queue("check-events", RAW, region=REGION, endpoint_url=aws_endpoint)
    names = {"manifests": "manifests", "output": "output", "state": "state"}
    settings: dict[str, dict[str, Any]] = {
        "paths": {name: f"s3://{LAKE}/{folder}" for name, folder in names.items()},
        "input": {"allowed_prefixes": [f"s3://{RAW}"]},
        "builder": {"claims": LAKE, "max_wait_seconds": 0.5},
        "aws": {"region": REGION, "endpoint_url": aws_endpoint},
        "metrics": {"sink": "none"},
    }
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "dev.toml").write_text(toml_of(settings))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMPACTOR_CONFIG", str(tmp_path / "config" / "dev.toml"))
    monkeypatch.setattr(checker, "POLL_SECONDS", 0.3)
    monkeypatch.setattr("compactor.cli.commands.job.smoke_test.POLL_SECONDS", 0.3)
    forget_clients()
    made = Deployment(aws_endpoint, queue_url, tmp_path)
    yield made
    for bucket in (RAW, LAKE):
        for each in s3.list_objects_v2(Bucket=bucket).get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=each["Key"])
    forget_clients()


def test_a_file_becomes_a_row_and_nothing_is_left(
    deployment: Deployment,
    iam: Iam,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each hop is shown with its time; afterwards neither input, row nor record of the file is there, and no column.

    The check makes only calls that the policy allows which `make policies` writes for it.
    """
    settings = load_settings(deployment.folder / "config" / "dev.toml", {})
    known: dict[str, str | None] = {
        **pseudo_parameters(REGION, "123456789012"),
        **dict.fromkeys(("WorkBucketName", "LakeBucketName", "ClaimsTableName"), LAKE),
        **{f"{name.title()}Prefix": name for name in ("manifests", "state", "output")},
        "PendingPrefix": "state/pending",
        "InputBucketName": RAW,
        "InputPrefix": "",
    }
    resolver = Resolver({"Conditions": {}}, known)
    statements = [
        {**each, "Resource": [resolver.value({"Fn::Sub": place}).rpartition("table/")[2] for place in each["Resource"]]}
        for each in check_statements(settings, key="", input_key="")
    ]

    def work(_: float) -> None:
        iam.statements = None
        deployment.step()
        iam.statements = statements

    monkeypatch.setattr("compactor.wiring.operating.time", SimpleNamespace(sleep=work, monotonic=time.monotonic))
    iam.statements = statements
    result = deployment.check()
    iam.statements = None
    assert iam.refused == []
    assert {action for each in statements for action in each["Action"]} == iam.used
    assert result.exit_code == 0, result.output
    shown = [line.partition(" s  ")[2] for line in result.stdout.splitlines()]
    assert shown[0] == "the file is in the input"
    assert shown[-3:] == ["its output is published", "its row is in the output", "its input, row and records are gone"]
    assert operating.verifier(deployment.app, deep=True).verify_all().discrepancies == []
    columns = {column.name for column in deployment.app.registry.latest().columns}
    assert columns <= {"_rescued_data"}
    kept = {key for key in deployment.listed() if EARLY in key or "compactor-check" in key}
    assert {key.partition("/accepted/")[0] for key in kept} <= {"state"}, kept  # the record of the part
    assert [key for key in deployment.listed() if key.startswith("manifests/") and base_name(key) != KEEP_MARKER] == []


def test_where_a_file_stops(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a job the check names the last hop and the log to read; the next check removes what was left."""
    with deployment.at_work(with_job=False):
        result = deployment.check("--timeout", "6", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [hop["name"] for hop in document["hops"]][-1] == "waiting"
    assert (document["has_row"], document["is_cleaned"]) == (False, False)
    assert "/aws/lambda/compactor-control-plane" in result.stderr
    monkeypatch.setattr(checker, "LEFT_SECONDS", 0.0)
    deployment.step()
    with deployment.at_work():
        document = json.loads(deployment.check("--json").stdout)
    assert (document["has_row"], document["is_cleaned"], len(document["leftovers"])) == (True, True, 1)
    assert not [key for key in deployment.listed() if "compactor-check" in key]


def test_a_file_that_shares_its_manifest(deployment: Deployment) -> None:
    """Rows of producers are never removed: a canary in a manifest with another file stays."""
    app = deployment.app
    app.store.put(f"s3://{RAW}/{EARLY}-of-a-producer.ndjson", b'{"id": 1}\n')
    made = checker.FOLDER + f"{EARLY}-other.ndjson"
    app.store.put(f"s3://{RAW}/{made}", b'{"id": 2}\n')
    finding.plan(app, f"s3://{RAW}/")
    deployment.step()
    before = {key for key in deployment.listed() if key.startswith("output/")}
    [key] = app.ledger.manifests(EARLY)
    assert canary_checker(deployment.app).clean(key) is False
    assert {key for key in deployment.listed() if key.startswith("output/")} == before


@pytest.mark.usefixtures("deployment")
def test_no_such_settings() -> None:
    """The settings have to exist, and to be named once."""
    result = CliRunner().invoke(command, ["job", "smoke-test", "config/nowhere.toml"])
    assert result.exit_code == 2
    assert "DST: config/nowhere.toml: no settings there" in result.stderr
    assert CliRunner().invoke(command, ["--config", "x.toml", "job", "smoke-test", "config/dev.toml"]).exit_code == 2
