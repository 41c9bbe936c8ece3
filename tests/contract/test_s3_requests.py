"""What a call of the store costs in S3: the requests that `tests/unit/cost/test_request_counts.py` takes it for."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.s3.store import S3Store
from compactor.cost.cost import STREAMED_PART_BYTES, Requests, of_streamed_output
from tests.support.aws_stand_in import REGION
from tests.unit.cost.test_request_counts import REQUESTS

COSTS = {
    "HeadObject": Requests(gets=1),
    "GetObject": Requests(gets=1),
    "PutObject": Requests(puts=1),
    "CreateMultipartUpload": Requests(puts=1),
    "UploadPart": Requests(puts=1),
    "CompleteMultipartUpload": Requests(puts=1),
    "CopyObject": Requests(puts=1),
    "ListObjectsV2": Requests(puts=1),
    "DeleteObjects": Requests(),
}


def _write(store: S3Store, uri: str, size: int) -> None:
    with store.writer(uri) as writer:
        writer.write(bytes(size))


def _write_new(store: S3Store, uri: str, size: int) -> None:
    with store.new_writer(uri) as writer:
        writer.write(bytes(size))


CALLS: dict[str, Callable[[S3Store, str, Path], Any]] = {
    "stat": lambda store, root, _: store.stat(root + "there"),
    "read": lambda store, root, _: store.read(root + "there"),
    "read_range": lambda store, root, _: store.read_range(root + "there", 0, 2),
    "list": lambda store, root, _: list(store.list(root)),
    "create": lambda store, root, _: store.create(root + "new", b"x"),
    "put": lambda store, root, _: store.put(root + "new", b"x"),
    "upload": lambda store, root, path: store.upload(root + "new", path),
    "writer": lambda store, root, _: _write(store, root + "new", 1),
    "new_writer": lambda store, root, _: _write_new(store, root + "new", 1),
    "copy": lambda store, root, _: store.copy(root + "there", root + "copy"),
    "delete": lambda store, root, _: store.delete([root + "there"]),
}


def _requests_of(client: Any, work: Callable[[], Any]) -> Requests:
    seen: Counter[str] = Counter()
    client.meta.events.register("before-sign.s3", lambda operation_name, **_: seen.update([operation_name]))
    work()
    total = Requests()
    for operation, times in seen.items():
        total += COSTS[operation] * times
    return total


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_of_a_call(name: str, aws_endpoint: str, bucket: str, tmp_path: Path) -> None:
    """Each call makes the requests to S3 that estimates take it for."""
    client = s3_client(REGION, aws_endpoint)
    store, root = S3Store(client), f"s3://{bucket}/"
    store.put(root + "there", b"1234")
    (tmp_path / "file").write_bytes(b"x")
    assert _requests_of(client, lambda: CALLS[name](store, root, tmp_path / "file")) == REQUESTS[name]


@pytest.mark.parametrize(
    "size",
    [
        1,
        STREAMED_PART_BYTES,
        STREAMED_PART_BYTES + 1,
        pytest.param(2 * STREAMED_PART_BYTES, marks=pytest.mark.full),
        pytest.param(2 * STREAMED_PART_BYTES + 1, marks=pytest.mark.full),
    ],
)
def test_requests_of_a_streamed_output(size: int, aws_endpoint: str, bucket: str) -> None:
    """An object that is written as it comes is sent in the parts that estimates take it for."""
    client = s3_client(REGION, aws_endpoint)
    store = S3Store(client)
    assert _requests_of(client, lambda: _write(store, f"s3://{bucket}/new", size)) == of_streamed_output(size)
    assert _requests_of(client, lambda: _write_new(store, f"s3://{bucket}/newer", size)) == of_streamed_output(size)
