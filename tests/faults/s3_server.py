"""A real S3 server on this machine: versitygw over a plain folder, or moto where that is not installed."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor.adapters.aws.clients import aws_session, s3_client
from compactor.demo.local_aws import CREDENTIALS as MOTO_CREDENTIALS
from compactor.demo.local_aws import local_aws
from tests.support.extras import VERSITYGW, versitygw_path
from tests.support.tls import Authority

ROOT = Path(__file__).resolve().parents[2]
REGION = "eu-west-1"

_HOST = "127.0.0.1"
_START_SECONDS = 20.0
_STARTS = 3  # another process may take the free port first
_END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where a server listens, and whom it lets in.

    Attributes:
        name: `versitygw` or `moto`.
        url: Its endpoint.
        authority: Who has signed its certificate; None without TLS.
    """

    name: str
    url: str
    access_key: str
    secret_key: str
    authority: Authority | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What clients of AWS need to find in theirs."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        if self.authority is not None:
            found["AWS_CA_BUNDLE"] = str(self.authority.file)
            found["JAVA_TOOL_OPTIONS"] = f"-Djavax.net.ssl.trustStore={self.authority.java_file}"
        return found

    def client(self, url: str | None = None, *, attempts: int = 8, timeout_seconds: float = 60.0) -> Any:
        """A client of the product, with the credentials in it.

        Args:
            url: A proxy in front of the server.
            attempts: How often it sends a request at most.
            timeout_seconds: How long it waits for an answer.
        """
        session = aws_session()
        core: Any = session._session
        core.set_credentials(self.access_key, self.secret_key)
        return s3_client(REGION, url or self.url, attempts=attempts, timeout_seconds=timeout_seconds, session=session)

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        self.client().create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Server]:
    """The best server that is at hand: versitygw, else moto.

    Args:
        folder: Where its objects go; the file system has to have extended attributes.
    """
    with versitygw(folder) if versitygw_path() else _moto() as server:
        yield server


@contextmanager
def versitygw(folder: Path, authority: Authority | None = None) -> Iterator[S3Server]:
    """A versitygw with all its objects in a folder; it ends with the block.

    Args:
        folder: Where its objects go.
        authority: Signs its certificate; None for plain connections.

    Raises:
        RuntimeError: It is not installed, or does not start.
    """
    program = versitygw_path()
    if program is None:
        raise RuntimeError(VERSITYGW.reason)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder.with_name(f"{folder.name}.log")
    server, process = _started(program, folder, log, authority)
    try:
        yield server
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _started(
    program: Path, folder: Path, log: Path, authority: Authority | None
) -> tuple[S3Server, subprocess.Popen[bytes]]:
    tls: list[str] = []
    if authority is not None:
        certificate = str(authority.server("versitygw", _HOST))  # its key is in the same file
        tls = ["--cert", certificate, "--key", certificate]
    for _ in range(_STARTS):
        port = _free_port()
        url = f"{'https' if tls else 'http'}://{_HOST}:{port}"
        server = S3Server("versitygw", url, "faults", "faults-secret", authority)
        account = ["--access", server.access_key, "--secret", server.secret_key, "--region", REGION, *tls]
        command = [str(program), *account, "--port", f"{_HOST}:{port}", "--keep-alive", "--quiet", "posix", str(folder)]
        with log.open("ab") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        if _listens(port, process):
            return server, process
        process.kill()
        process.wait()
    raise RuntimeError(f"versitygw did not start: {log.read_text(errors='replace')[-500:]}")


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((_HOST, port)) == 0:
                time.sleep(0.05)  # long enough for a loser of the race for the port to end
                return process.poll() is None
        time.sleep(0.02)
    return False


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_HOST, 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def _moto() -> Iterator[S3Server]:
    with local_aws() as url:
        yield S3Server("moto", url, MOTO_CREDENTIALS["AWS_ACCESS_KEY_ID"], MOTO_CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
