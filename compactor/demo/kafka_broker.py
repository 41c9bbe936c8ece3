"""A broker of Kafka for the demo: one process on the loopback address, with a folder of its own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compactor.core.errors import CompactorError, SettingsError
from compactor.core.extras import need

JARS = Path(".tools/kafka")
"""Where `make demo SOURCE=kafka` puts a broker."""

_START_SECONDS = 120.0
_END_SECONDS = 30.0
_CLUSTER_ID = "Q29tcGFjdG9yRGVtb3MxMQ"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")


def check_broker(jars: Path) -> None:
    """Check that a broker can be started, before anything waits for it.

    Raises:
        ExtraMissing: The client is not installed.
        SettingsError: There is no Java, or no broker.
    """
    need("kafka")
    if shutil.which("java") is None:
        raise SettingsError(["java: not found -> expected Java 17 or 21, in which the broker runs"])
    if not any(jars.glob("*kafka_*.jar")):
        hint = "expected a folder with its jars, which `make demo SOURCE=kafka` downloads"
        raise SettingsError([f"--kafka-jars: {jars} holds no broker -> {hint}"])


@contextmanager
def kafka_broker(jars: Path, folder: Path) -> Iterator[str]:
    """Run a broker, and end it; yields its address.

    Raises:
        CompactorError: It does not start.
    """
    from compactor.adapters.kafka.local_setup import answers  # noqa: PLC0415 - it needs the client

    port, controller = _free_ports(2)
    servers, settings = f"127.0.0.1:{port}", folder / "server.properties"
    settings.write_text(_properties(folder, servers, f"127.0.0.1:{controller}"))
    java = ["java", *_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", f"{jars.resolve()}/*"]
    log = folder / "broker.log"
    with log.open("wb") as output:
        storage = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(settings)]
        if subprocess.run(storage, stdout=output, stderr=output, check=False).returncode:  # noqa: S603
            raise CompactorError(f"the broker cannot format its folder: {_end_of(log)}")
        process = subprocess.Popen([*java, "kafka.Kafka", str(settings)], stdout=output, stderr=output)  # noqa: S603
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not answers(servers):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise CompactorError(f"the broker does not start: {_end_of(log)}")
                time.sleep(0.2)
            yield servers
        finally:
            process.kill()  # nothing of it is kept
            process.wait(_END_SECONDS)


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-1000:]


def _free_ports(number: int) -> list[int]:
    taken = [socket.socket() for _ in range(number)]
    try:
        for each in taken:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in taken]
    finally:
        for each in taken:
            each.close()


def _properties(folder: Path, servers: str, controller: str) -> str:
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{servers},CONTROLLER://{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": folder / "logs",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
        "num.io.threads": 2,
        "num.network.threads": 2,
    }
    return "".join(f"{key}={value}\n" for key, value in properties.items())
