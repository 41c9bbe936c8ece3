"""The functions of Lambda on a stand-in for AWS: from an object that is put to a manifest that names it."""

import importlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.clients import s3_client, sqs_client
from compactor.adapters.aws.local_setup import feed, make_buckets, make_claims_table, make_event_queue
from compactor.core.documents.manifest import Manifest
from compactor.core.errors import SettingsError
from compactor.telemetry.log_events import CATALOGUE
from compactor.wiring.functions import forget_clients
from tests.support.aws_stand_in import REGION
from tests.support.s3_messages import notification

ROOT = Path(__file__).resolve().parents[2]
RAW, LAKE = "functions-raw", "functions-lake"
SETTINGS = f"""
[paths]
manifests = "s3://{LAKE}/manifests"
output = "s3://{LAKE}/output"
state = "s3://{LAKE}/state"
[input]
allowed_prefixes = ["s3://{RAW}/"]
[builder]
claims = "{LAKE}"
target_manifest_bytes = 1000
max_wait_seconds = 1
[metrics]
sink = "log"
[aws]
region = "{REGION}"
"""


@pytest.fixture(scope="module")
def places(aws_endpoint: str) -> str:
    """Buckets and table of the functions, and their settings in S3; the URL of the stand-in."""
    make_buckets([RAW, LAKE, f"{LAKE}-settings"], region=REGION, endpoint_url=aws_endpoint)
    make_claims_table(LAKE, region=REGION, endpoint_url=aws_endpoint)
    s3_client(REGION, aws_endpoint).put_object(Bucket=f"{LAKE}-settings", Key="c.toml", Body=SETTINGS.encode())
    return aws_endpoint


@pytest.fixture
def aws(places: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of the stand-in, with the environment of a function."""
    monkeypatch.setenv("COMPACTOR_CONFIG", f"s3://{LAKE}-settings/c.toml")
    monkeypatch.setenv("COMPACTOR_AWS__ENDPOINT_URL", places)
    forget_clients()
    yield places
    forget_clients()


def handler(name: str) -> Any:
    return importlib.import_module(f"lambdas.{name}").handler


def test_from_object_to_manifest(aws: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Objects that are put are announced, claimed, and named in manifests once; poison stays in the queue.

    The log is one JSON object a line, and what went wrong has its next move.
    """
    queue_url = make_event_queue("functions-events", RAW, region=REGION, endpoint_url=aws)
    s3, sqs = s3_client(REGION, aws), sqs_client(REGION, aws)
    keys = [f"2026-01-02/a b+{number}é.ndjson" for number in range(25)] + ["_SUCCESS"]
    for key in keys:
        s3.put_object(Bucket=RAW, Key=key, Body=b"x" * 90)
    sqs.send_message(QueueUrl=queue_url, MessageBody="poison")
    fed = feed(sqs, queue_url, handler("manifest_builder"), batch_size=15)
    assert (fed.messages, fed.failed) == (28, 1)  # with S3's test event
    sealed = handler("manifest_sealer")({}, None)
    assert (sealed["waiting_parts"], sealed["unreadable_parts"]) == (0, 0)
    listed = s3.list_objects_v2(Bucket=LAKE, Prefix="manifests/")["Contents"]
    bodies = [s3.get_object(Bucket=LAKE, Key=each["Key"])["Body"].read() for each in listed]
    named = Counter(file.uri for body in bodies for file in Manifest.model_validate_json(body).files)
    assert named == {f"s3://{RAW}/{key}": 1 for key in keys[:-1]}
    logged = {entry["event"]: entry for entry in map(json.loads, capsys.readouterr().err.splitlines())}
    assert set(logged) == {"messages.built", "message.unreadable", "parts.sealed", "metrics.emitted"}
    assert logged["message.unreadable"]["next"] == CATALOGUE["message.unreadable"].next_move


def test_a_failing_call_acknowledges_nothing(aws: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a person must act, such as where the claims table is missing, the call fails as a whole."""
    monkeypatch.setenv("COMPACTOR_BUILDER__CLAIMS", "no-such-table")
    event = {"Records": [{"messageId": "1", "body": notification(RAW, "a.ndjson", 1, "e")}]}
    with pytest.raises(Exception, match="no-such-table"):
        handler("manifest_builder")(event, None)
    assert aws


def test_functions_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that does not know where its settings are says which variable is missing."""
    monkeypatch.delenv("COMPACTOR_CONFIG", raising=False)
    forget_clients()
    with pytest.raises(SettingsError, match="COMPACTOR_CONFIG: not set"):
        handler("manifest_sealer")({}, None)


COLD_START = """
import json, sys, time
started = time.perf_counter()
import lambdas.{name}
seconds = time.perf_counter() - started
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([
    seconds,
    int(peak.split()[1]) / 1024,
    sorted({{name.split(".")[0] for name in sys.modules}}),
]))
"""


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "lambdas").glob("[!_]*.py")))
def test_functions_start_without_heavy_libraries(name: str) -> None:
    """Importing a function loads neither Spark nor Arrow, and stays small; what it costs is printed."""
    source = COLD_START.format(name=name)
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, mebibytes, modules = json.loads(done.stdout)
    sys.stdout.write(f"lambdas.{name}: {seconds:.2f} s, {mebibytes:.0f} MiB\n")
    assert not {"pyspark", "pyarrow", "pandas", "numpy", "moto", "click", "rich", "py4j"} & set(modules)
    assert mebibytes < 120
