"""A job on S3 whose files of rows are written in place: what it sends, and that it copies none of them."""

from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from random import Random
from typing import Any

import pytest

from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.s3 import multipart
from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.wiring import engines
from tests.support import extras
from tests.support.aws_stand_in import REGION
from tests.support.harness import FLAWED, Harness, sink_of

MIB = 1024 * 1024


@dataclass
class Traffic:
    """What was sent about Parquet files.

    Attributes:
        requests: By the name of the operation.
        sent_bytes: In the bodies of requests.
        conditions: Of requests that make an object in the output.
    """

    client: Any
    requests: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0
    conditions: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.client.meta.events.register("provide-client-params.s3", self._note)

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        key = params.get("Key", "")
        if not key.endswith(".parquet") or model.name in {"HeadObject", "GetObject"}:
            return
        self.requests[model.name] += 1
        body = params.get("Body")
        self.sent_bytes += len(body.getbuffer()) if isinstance(body, BytesIO) else 0
        if "/output/" in key and model.name in {"PutObject", "CompleteMultipartUpload"}:
            self.conditions.add(params.get("IfNoneMatch", "none"))


def compacted(in_place: bool | None, aws_endpoint: str, bucket: str) -> tuple[Harness, Traffic]:
    client = s3_client(REGION, aws_endpoint)
    store = S3Store(client)
    harness = Harness(table={}, in_place=in_place, root=f"s3://{bucket}/{in_place}", store=store)
    lines = b"".join(b'{"id": "%d", "text": "%s"}\n' % (at, _random(at)) for at in range(9_500))
    harness.deliver("m1", lines, FLAWED)
    traffic = Traffic(client)
    assert harness.run_once(engine=engines.native_engine(harness.app(), ThreadBinWorkers(store))).committed == 1
    return harness, traffic


def _random(seed: int) -> bytes:
    return Random(seed).randbytes(300).hex().encode()


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.NATIVE.need()
    monkeypatch.setattr(multipart, "_PART_BYTES", 5 * MIB)


def test_files_are_sent_once_and_not_copied(aws_endpoint: str, bucket: str) -> None:
    """Unless told otherwise: each is made by a request that fails if there is one; only rejects are copied."""
    copied, of_copy = compacted(False, aws_endpoint, bucket)
    published, of_place = compacted(None, aws_endpoint, bucket)
    rejects = len(published.commit("m1").rejects)
    outputs = len(published.commit("m1").outputs)
    assert all(file.is_in_place for file in published.commit("m1").outputs)
    assert of_copy.requests["CopyObject"] == len(copied.commit("m1").outputs) + rejects
    assert of_place.requests["CopyObject"] == rejects == 1
    assert of_place.requests["CompleteMultipartUpload"] >= 1, "large enough for parts"
    assert of_place.requests["CompleteMultipartUpload"] + of_place.requests["PutObject"] >= outputs
    assert of_place.conditions == {"*"}
    assert of_copy.conditions == set()
    written = sum(file.size_bytes for file in published.commit("m1").outputs)
    assert of_place.sent_bytes == written, "the one time that they are written"
    assert of_copy.sent_bytes == sum(file.size_bytes for file in copied.commit("m1").outputs), "and copied as well"
    live = sorted(file.uri for file in sink_of(published).live_files())
    assert live == sorted(file.final for file in published.commit("m1").outputs)
    published.check_exact()
