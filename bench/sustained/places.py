"""Where a run takes place: in folders of this machine, or on an S3 server of this machine over TLS, with a queue."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.inputs import Input
from compactor.adapters.aws.clients import sqs_client
from compactor.adapters.aws.s3.store import S3Store
from compactor.adapters.local.store import LocalStore
from compactor.core.ports import ObjectStore
from compactor.demo.local_aws import local_aws

RAW = "raw"
_BUCKET = "sustained"
_QUEUE = "sustained-events"
_PLACES = ("manifests", "output", "state")


@dataclass(frozen=True, slots=True)
class Place:
    """The places of a run.

    Attributes:
        root: The URI of the folder or bucket that contains them.
        folder: The same as a folder of this machine.
        ready: The folder of the ready-made files.
        etags: The ETag of each ready-made file, which its links share, by its name.
        settings: The settings that name the places.
        servers: The id of each process that stands in for AWS, by its name.
        queue: The URL of the queue for messages; empty for a pipe.
    """

    root: str
    folder: Path
    ready: Path
    etags: Mapping[str, str]
    settings: dict[str, dict[str, object]]
    servers: Mapping[str, int] = field(default_factory=dict)
    queue: str = ""

    def path(self, uri: str) -> Path:
        """The path of an object on this machine."""
        return self.folder / uri.removeprefix(f"{self.root}/")


@contextmanager
def on_disk(home: Path, source: Input) -> Iterator[Place]:
    """Folders of this machine."""
    store = LocalStore()
    etags = {ready.name: _etag(store, str(ready)) for ready in source.folder.iterdir()}
    yield Place(str(home), home, source.folder, etags, _settings(str(home)))


@contextmanager
def over_tls(home: Path, source: Input) -> Iterator[Place]:
    """A versitygw over TLS and moto's SQS, which end with the context.

    This process and its children trust the server from then on. The ready-made files are put there once; links to them
    share their ETags, which versitygw keeps with the file.

    Raises:
        RuntimeError: versitygw is not installed.
    """
    # They come with the repository only.
    from tests.faults.s3_server import REGION, versitygw  # noqa: PLC0415
    from tests.support.tls import Authority  # noqa: PLC0415

    with versitygw(home / "s3", Authority.make(home, "authority")) as server, local_aws() as aws_url:
        os.environ.update(server.environment)  # this process ends with the benchmark
        server.make_bucket(_BUCKET)
        store, root = S3Store(server.client()), f"s3://{_BUCKET}"
        etags = {}
        for file in source.folder.iterdir():
            # In one piece: versitygw was seen to refuse pieces with their checksum behind them, over TLS.
            uri = f"{root}/ready/{file.name}"
            store.put(uri, file.read_bytes())
            etags[file.name] = _etag(store, uri)
        queue = sqs_client(REGION, aws_url).create_queue(QueueName=_QUEUE)["QueueUrl"]
        aws: dict[str, dict[str, object]] = {"aws": {"region": REGION, "endpoint_url": server.url}}
        folder = home / "s3" / _BUCKET
        servers = {child.name(): child.pid for child in psutil.Process().children() if child.name() == "versitygw"}
        yield Place(root, folder, folder / "ready", etags, {**_settings(root), **aws}, servers, queue)


def _etag(store: ObjectStore, uri: str) -> str:
    info = store.stat(uri)
    if info is None or info.etag is None:
        raise FileNotFoundError(f"{uri}: went away as soon as it was there")
    return info.etag


def _settings(root: str) -> dict[str, dict[str, object]]:
    return {
        "paths": {place: f"{root}/{place}" for place in _PLACES},
        "input": {"allowed_prefixes": [f"{root}/{RAW}"]},
    }
