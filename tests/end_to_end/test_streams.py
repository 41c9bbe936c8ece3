"""Several streams on a stand-in for AWS: one queue, one table of claims, the functions as deployed, and one job."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from compactor.adapters.aws.clients import aws_client, s3_client, sqs_client
from compactor.adapters.aws.local_setup import feed, make_buckets, make_claims_table, make_event_queue
from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.entry import compactor as command
from compactor.settings.settings import Settings, load_settings
from compactor.wiring import streaming
from compactor.wiring.app import App
from compactor.wiring.functions import build_messages, forget_clients, seal_parts
from tests.contract.test_catalog_table import table_input
from tests.support.aws_stand_in import REGION
from tests.support.fakes import PlainEngine

DAY = timedelta(days=1)
RAW, LAKE, DATABASE = "streams-raw", "streams-lake", "streams"
TOML = """
[paths]
manifests = "s3://{lake}/manifests"
output = "s3://{lake}/rows"
state = "s3://{lake}/state"
[input]
allowed_prefixes = ["s3://{raw}"]
[builder]
claims = "{lake}"
max_wait_seconds = 1
[control]
job_name = "streams"
[aws]
region = "{region}"
endpoint_url = "{url}"
[metrics]
namespace = "Streams"
environment = "test"
sink = "cloudwatch"
[[streams]]
name = "orders"
weight = 3
[streams.input]
allowed_prefixes = ["s3://{raw}/orders"]
[streams.schema]
table = "{database}.orders"
[[streams]]
name = "clicks"
[streams.input]
allowed_prefixes = ["s3://{raw}/clicks", "s3://{raw}/orders/clicks"]
[streams.schema]
table = "{database}.clicks"
"""


@dataclass
class Deployed:
    """A deployment of two streams."""

    url: str
    queue_url: str
    config: Path

    @property
    def settings(self) -> Settings:
        return load_settings(self.config, {})

    def put(self, key: str, *lines: str) -> None:
        s3_client(REGION, self.url).put_object(Bucket=RAW, Key=key, Body="\n".join(lines).encode())

    def work(self) -> None:
        """What the event source, the schedule and the job do."""
        feed(sqs_client(REGION, self.url), self.queue_url, lambda event, _: build_messages(event))
        seal_parts()
        job = streaming.streams_job(App(self.settings), self._service)
        job.run(once=True)

    def _service(self, app: App) -> Any:
        return streaming.service_on(
            app,
            PlainEngine(app.store, metadata_columns=app.settings.metadata_columns),
            ListedManifests(app.store, app.layout.manifests_folder),
        )

    def columns(self, table: str) -> list[str]:
        found = aws_client("glue", REGION, self.url).get_table(DatabaseName=DATABASE, Name=table)["Table"]
        return [each["Name"] for each in found["StorageDescriptor"]["Columns"]]

    def table(self, name: str) -> Any:
        return aws_client("glue", REGION, self.url).get_table(DatabaseName=DATABASE, Name=name)["Table"]

    def run(self, *arguments: str) -> Any:
        return CliRunner().invoke(command, ["--config", str(self.config), *arguments])

    def sums(self, metric: str) -> dict[str, float]:
        """The sum of a metric for each stream, and for the job with an empty name."""
        client = aws_client("cloudwatch", REGION, self.url)
        found = {}
        for stream in ("", "orders", "clicks"):
            dimensions = {"Job": "streams", "Environment": "test", **({"Stream": stream} if stream else {})}
            data = client.get_metric_data(
                MetricDataQueries=[
                    {
                        "Id": "m",
                        "MetricStat": {
                            "Metric": {
                                "Namespace": "Streams",
                                "MetricName": metric,
                                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
                            },
                            "Period": 86_400,
                            "Stat": "Sum",
                        },
                    }
                ],
                StartTime=datetime.now(UTC) - DAY,  # the stand-in goes through every period
                EndTime=datetime.now(UTC) + DAY,
            )
            found[stream] = sum(data["MetricDataResults"][0]["Values"])
        return found


@pytest.fixture
def deployed(aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    make_buckets([RAW, LAKE], region=REGION, endpoint_url=aws_endpoint)
    make_claims_table(LAKE, region=REGION, endpoint_url=aws_endpoint)
    queue_url = make_event_queue("streams-events", RAW, region=REGION, endpoint_url=aws_endpoint)
    glue = aws_client("glue", REGION, aws_endpoint)
    glue.create_database(DatabaseInput={"Name": DATABASE})
    for name in ("orders", "clicks"):
        glue.create_table(DatabaseName=DATABASE, TableInput=table_input(name))
    config = tmp_path / "compactor.toml"
    config.write_text(TOML.format(raw=RAW, lake=LAKE, database=DATABASE, region=REGION, url=aws_endpoint))
    monkeypatch.setenv("COMPACTOR_CONFIG", str(config))
    forget_clients()
    yield Deployed(aws_endpoint, queue_url, config)
    forget_clients()


def test_a_new_key_of_one_stream_leaves_the_others_alone(deployed: Deployed, tmp_path: Path) -> None:
    """From event to table: each stream has its rows, columns and figures, and they add up to those of the job."""
    deployed.put("orders/2026-01-01/a.ndjson", '{"id": 1}', "no json")
    deployed.put("orders/clicks/2026-01-01/b.ndjson", '{"page": "x"}', '{"page": "y"}')
    deployed.put("of-none/c.ndjson", '{"lost": false}')
    deployed.work()
    assert (deployed.columns("orders"), deployed.columns("clicks")) == (
        ["_rescued_data", "id"],
        ["_rescued_data", "page"],
    )
    clicks = deployed.table("clicks")

    deployed.put("orders/2026-01-01/d.ndjson", '{"id": 2, "new key": true}')
    deployed.work()
    assert deployed.columns("orders") == ["_rescued_data", "id", "new_key"]
    assert deployed.table("clicks") == clicks  # not even its time of update changed

    assert deployed.sums("RecordsOut") == {"": 4, "orders": 2, "clicks": 2}
    assert deployed.sums("RecordsRejected") == {"": 1, "orders": 1, "clicks": 0}
    assert deployed.sums("FilesAnnounced") == {"": 3, "orders": 2, "clicks": 1}
    assert deployed.sums("FilesUnrouted") == {"": 1, "orders": 0, "clicks": 0}

    verified = deployed.run("verify", "--json")
    assert verified.exit_code == 0, verified.output
    found = {each["stream"]: (each["lines"], each["rows"]) for each in json.loads(verified.stdout)["streams"]}
    assert found == {"orders": (3, 2), "clicks": (2, 2)}
    statuses = json.loads(deployed.run("status", "--json").stdout)["streams"]
    assert {each["stream"]: each["schema"]["columns"] for each in statuses} == {"orders": 2, "clicks": 1}
    reports = json.loads(deployed.run("report", "--json").stdout)["streams"]
    assert {each["stream"]: each["totals"]["rows"] for each in reports} == {"orders": 2, "clicks": 2}
    refused = deployed.run("redrive", "rejects")
    assert (refused.exit_code, "expected one of orders, clicks" in refused.output) == (2, True)
    redriven = json.loads(deployed.run("redrive", "rejects", "--stream", "orders", "--json").stdout)
    assert len(redriven["redriven"]) + len(redriven["refused"]) == 1

    s3 = s3_client(REGION, deployed.url)
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=LAKE, Prefix="rows/clicks/")["Contents"]]
    for number, key in enumerate(keys):
        (tmp_path / f"{number}.parquet").write_bytes(s3.get_object(Bucket=LAKE, Key=key)["Body"].read())
    rows = duckdb.read_parquet(str(tmp_path / "*.parquet")).select("page").order("page").fetchall()
    assert rows == [("x",), ("y",)]
