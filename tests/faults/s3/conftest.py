"""A real S3 server behind a proxy that spoils calls, clients without patience, and lakes on it."""

import uuid
from collections.abc import Callable, Iterator

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.retries.standard import ExponentialBackoff

from tests.faults.proxy import FaultProxy
from tests.faults.s3_findings import FINDINGS, Findings
from tests.faults.s3_lake import BUCKET, SAMPLE_BYTES, S3Lake
from tests.faults.s3_server import S3Server, s3_server
from tests.support.engines import engines_without_spark
from tests.support.extras import VERSITYGW

MIB = 1024 * 1024
PARTS = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB, max_concurrency=2)


@pytest.fixture
def findings() -> Findings:
    return FINDINGS


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    VERSITYGW.need_if_required()
    with s3_server(tmp_path_factory.mktemp("s3") / "data") as started:
        started.make_bucket(BUCKET)
        yield started


@pytest.fixture(scope="module")
def proxy(server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(server.url, slow_body_seconds=0.1) as started:
        yield started


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, proxy: FaultProxy) -> None:
    """No client pauses before it tries again: what counts is what happens, not when."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.0)
    monkeypatch.setattr("compactor.job.service._pause_seconds", lambda _: 0.01)
    monkeypatch.setattr("compactor.adapters.aws.s3.store._UPLOAD", PARTS)
    monkeypatch.setattr("compactor.adapters.aws.s3.store._COPY", PARTS)
    monkeypatch.setattr("compactor.adapters.aws.s3.multipart._PART_BYTES", 5 * MIB)
    monkeypatch.setattr("compactor.engines.native.engine.SAMPLE_BYTES", SAMPLE_BYTES)
    proxy.use()
    proxy.restart_count()


@pytest.fixture(params=engines_without_spark())
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def lakes(server: S3Server, engine: str) -> Callable[[], S3Lake]:
    """Makes lakes that no other test uses."""
    return lambda: S3Lake(server, f"s3://{BUCKET}/{uuid.uuid4().hex}", engine)


# --- The store
