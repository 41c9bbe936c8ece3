"""Two releases work on one state, the one before and this one: each part as a process, on a stand-in for AWS.

Whatever parts are of which release, every line becomes one row, and both releases say so.
"""

import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pyarrow.parquet as pq
import pytest

from compactor import __version__
from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.local_setup import make_buckets, make_claims_table
from compactor.demo.process_job import ProcessJob
from compactor.settings.control_policy import Policy
from compactor.settings.settings import load_settings
from compactor.settings.toml import toml_of
from compactor.wiring.control import ControlComponents
from compactor.wiring.job.app import App
from deploy.restart import Restart
from tests.faults.conftest import wait_until
from tests.support.aws_stand_in import REGION
from tests.support.extras import CARGO, HISTORY, NATIVE
from tests.support.previous_release import ROOT, unpack_previous
from tests.support.s3_messages import notification

# The first test may have to build the native engine of the release before.
pytestmark = [HISTORY.needed, NATIVE.needed, CARGO.needed, pytest.mark.full, pytest.mark.timeout(900)]

OLD, NEW = "old", "new"
NUMBERS = count(1)

FUNCTION = """
import importlib, json, sys
event = json.load(sys.stdin)
json.dump(importlib.import_module("lambdas." + sys.argv[1]).handler(event, None), sys.stdout)
"""

DYING_JOB = """
import os, sys
from pathlib import Path
from compactor.settings.settings import load_settings
try:
    from compactor.wiring.job.app import App
except ImportError:
    from compactor.wiring.app import App
die = lambda step, _: os._exit(9) if str(step) == sys.argv[1] else None
settings = load_settings(Path(os.environ["COMPACTOR_CONFIG"]), os.environ)
App(settings, on_crash_point=die).threaded_service(2).run(once=True)
"""


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("previous")
    unpack_previous(folder)
    return folder


@dataclass(frozen=True)
class Deployment:
    """One state, on which processes of both releases work.

    Attributes:
        trees: The folder of each release's code.
        config: The settings file.
        bucket: Everything is in it.
        endpoint: The URL of the stand-in.
    """

    trees: Mapping[str, Path]
    config: Path
    bucket: str
    endpoint: str

    @property
    def s3(self) -> Any:
        return s3_client(REGION, self.endpoint)

    def keys(self, prefix: str) -> list[str]:
        """The objects below a prefix of the bucket."""
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [each["Key"] for each in found.get("Contents", ())]

    def environment(self, release: str) -> dict[str, str]:
        """The variables of a process of a release."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.trees[release]),
            "PYTHONSAFEPATH": "1",  # the current folder has the code of this release
            "COMPACTOR_CONFIG": str(self.config),
            "COMPACTOR_AWS__ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
        }

    def call(self, release: str, *arguments: str, stdin: object = None, codes: Sequence[int] = (0,)) -> str:
        """Run Python with the code of a release; returns what it prints."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env=self.environment(release),
            cwd=self.config.parent,
            input=json.dumps(stdin),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode in codes, (
            f"{arguments} of the {release} release ended with {done.returncode}: {done.stderr or done.stdout}"
        )
        return done.stdout

    def put(self, name: str, ids: Sequence[int]) -> str:
        """An input file of these rows, a rejected line and a blank one; returns the message that announces it."""
        body = b"".join(b'{"id": %d, "price": 1.50}\n' % each for each in ids) + b"{broken\n\n"
        etag = self.s3.put_object(Bucket=self.bucket, Key=f"raw/{name}", Body=body)["ETag"].strip('"')
        return notification(self.bucket, f"raw/{name}", len(body), etag)

    def build(self, release: str, *messages: str) -> None:
        """Have the builder of a release take in messages."""
        event = {"Records": [{"messageId": str(number), "body": body} for number, body in enumerate(messages)]}
        answer = json.loads(self.call(release, "-c", FUNCTION, "manifest_builder", stdin=event))
        assert answer == {"batchItemFailures": []}

    def seal(self, release: str) -> None:
        """Have the sealer of a release seal everything."""
        answer = json.loads(self.call(release, "-c", FUNCTION, "manifest_sealer", stdin={}))
        assert (answer["waiting_parts"], answer["unreadable_parts"]) == (0, 0)

    def run(self, release: str) -> None:
        """Have the job of a release do what waits. Rejects are no failure, quarantined files need a person."""
        self.call(release, "-m", "compactor", "run", "--once", codes=(0, 3))

    def killed_at(self, release: str, step: str) -> None:
        """Have the job of a release die at a step."""
        self.call(release, "-c", DYING_JOB, step, codes=(9,))

    def check(self, ids: Sequence[int], *, rejects: int) -> None:
        """Both releases find everything in order, and each line is one row or one reject."""
        for release in (OLD, NEW):
            found = json.loads(self.call(release, "-m", "compactor", "verify", "--deep", "--json"))
            assert (release, found["discrepancies"]) == (release, [])
            assert (found["rows"], found["rejected_lines"]) == (len(ids), rejects)
        bodies = [self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in self.keys("output/")]
        found_ids = [each for body in bodies for each in pq.read_table(io.BytesIO(body)).column("id").to_pylist()]
        assert sorted(map(int, found_ids)) == sorted(ids)


@pytest.fixture
def deployment(aws_endpoint: str, previous: Path, tmp_path: Path) -> Deployment:
    bucket = f"upgrade-{next(NUMBERS)}"
    make_buckets([bucket], region=REGION, endpoint_url=aws_endpoint)
    make_claims_table(bucket, region=REGION, endpoint_url=aws_endpoint)
    config = tmp_path / "compactor.toml"
    config.write_text(
        toml_of(
            {
                "paths": {name: f"s3://{bucket}/{name}" for name in ("manifests", "output", "state")},
                "input": {"allowed_prefixes": [f"s3://{bucket}/raw/"]},
                "builder": {"claims": bucket, "max_wait_seconds": 1, "target_manifest_bytes": 1_000_000},
                "stream": {"source": "listing"},
                "convert": {"engine": "native"},
                "control": {"job_name": bucket},
                "metrics": {"sink": "log"},
                "aws": {"region": REGION},
            }
        )
    )
    return Deployment({OLD: previous, NEW: ROOT}, config, bucket, aws_endpoint)


def test_the_trees_are_of_two_releases(deployment: Deployment) -> None:
    """Each process has the code of its own release."""
    for release, tree in deployment.trees.items():
        place = deployment.call(release, "-c", "import compactor; print(compactor.__file__)").strip()
        assert Path(place).is_relative_to(tree)


@pytest.mark.parametrize(
    ("builder", "sealer", "job"), [(NEW, NEW, OLD), (OLD, OLD, NEW), (NEW, OLD, NEW), (OLD, NEW, OLD)]
)
def test_functions_and_job_of_two_releases(deployment: Deployment, builder: str, sealer: str, job: str) -> None:
    """Parts of one builder are sealed by the other's sealer, and a file that both are told of is taken once."""
    first, second = deployment.put("2026-01-02-a.ndjson", range(5)), deployment.put("2026-01-02-b.ndjson", range(5, 9))
    deployment.build(builder, first, first)
    deployment.build(sealer, first, second)
    deployment.seal(sealer)
    deployment.run(job)
    deployment.check(range(9), rejects=2)


@pytest.mark.parametrize("step", ["verified", "decided", "published_one"])
@pytest.mark.parametrize(("dying", "following"), [(OLD, NEW), (NEW, OLD)])
def test_the_other_release_goes_on_where_a_run_died(
    deployment: Deployment, dying: str, following: str, step: str
) -> None:
    """An upgrade, and the way back, at each step of a manifest."""
    deployment.build(dying, deployment.put("2026-01-02-a.ndjson", range(5)))
    deployment.seal(dying)
    deployment.killed_at(dying, step)
    deployment.build(following, deployment.put("2026-01-02-b.ndjson", range(5, 9)))
    deployment.seal(following)
    deployment.run(following)
    deployment.check(range(9), rejects=2)


@pytest.mark.parametrize(("operator", "job"), [(NEW, OLD), (OLD, NEW)])
def test_an_operator_of_another_release_redrives(deployment: Deployment, operator: str, job: str) -> None:
    """A file that was gone is redriven by one release on what the other's job left, and that job takes it up."""
    deployment.build(
        job, deployment.put("2026-01-02-a.ndjson", range(5)), deployment.put("2026-01-02-b.ndjson", range(5, 9))
    )
    deployment.seal(job)
    deployment.s3.delete_object(Bucket=deployment.bucket, Key="raw/2026-01-02-b.ndjson")
    deployment.run(job)
    deployment.put("2026-01-02-b.ndjson", range(5, 9))
    redriven = json.loads(deployment.call(operator, "-m", "compactor", "redrive", "files", "--yes", "--json"))
    assert redriven["refused"] == []
    deployment.run(job)
    deployment.call(operator, "-m", "compactor", "redrive", "rejects", "--dry-run", codes=(0, 3))
    deployment.check(range(9), rejects=2)


@pytest.mark.parametrize(("plane", "job"), [(NEW, OLD), (OLD, NEW)])
def test_a_control_plane_of_another_release(deployment: Deployment, plane: str, job: str) -> None:
    """It sees the heartbeat of the other's job and drains it, and each reads the records that the other left."""
    glue = boto3.client("glue", region_name=REGION, endpoint_url=deployment.endpoint)
    glue.create_job(Name=deployment.bucket, Role="r", Command={"Name": "glueetl"})
    with subprocess.Popen(
        [sys.executable, "-m", "compactor", "run"],
        env=deployment.environment(job),
        cwd=deployment.config.parent,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            wait_until(lambda: deployment.keys("state/runs/"), running)
            checked = deployment.call(plane, "-m", "compactor", "control", "--json", codes=(0, 3))
            [living] = json.loads(checked)["snapshot"]["heartbeats"]["living"]
            stopped = json.loads(deployment.call(plane, "-m", "compactor", "stop", "--wait", "30", "--json"))
            assert [each["run_id"] for each in stopped["asked"]] == [living["run_id"]]
            assert stopped["running"] == []
            assert running.wait(60) == 0
        finally:
            running.kill()
    for release in (plane, job):
        decided = json.loads(deployment.call(release, "-c", FUNCTION, "control_plane", stdin={}))
        assert decided["failed"] == []


def test_a_restart_drains_the_release_before(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With its control plane at work, the run of the release before finishes what it has, and one of this follows."""
    environment = deployment.environment(OLD)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, environment[name])
    settings = load_settings(deployment.config, environment | {"COMPACTOR_CONTROL__BACKOFF_FIRST_SECONDS": "1"})
    job, lines, ended = ProcessJob(environment, tmp_path / "job.log"), [], threading.Event()

    def check() -> None:
        while not ended.wait(0.5):
            ControlComponents(settings, job=job).plane.check()

    plane = threading.Thread(target=check)
    plane.start()
    try:
        deployment.build(OLD, deployment.put("2026-01-02-a.ndjson", range(5)))
        deployment.seal(NEW)
        eventually(lambda: deployment.keys("state/runs/"))
        environment["PYTHONPATH"] = str(ROOT)  # what a deployment does: the next run has the new code
        app = App(settings)
        Restart(
            runs=app.runs,
            policy=Policy(**settings.control.model_dump()),
            release=__version__,
            seconds=time.monotonic,
            pause=time.sleep,
            echo=lines.append,
        ).go()
        deployment.build(NEW, deployment.put("2026-01-02-b.ndjson", range(5, 9)))
        deployment.seal(NEW)
        eventually(lambda: not [key for key in deployment.keys("manifests/") if key.endswith(".json")])
    finally:
        ended.set()
        plane.join()
        job.end()
    told = [re.sub(r"run \S+", "run R", line) for line in lines]
    assert re.fullmatch(r"run R \(release .+\): asked to stop; it finishes the manifests in flight", told[0])
    assert re.match(r"run R \(release .+\): ended after ", told[1])
    assert told[-1].startswith(f"run R (release {__version__}): works, ")
    deployment.check(range(9), rejects=2)


def eventually(happened: Callable[[], object]) -> None:
    """Wait for something that other processes are about to do."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)
