"""A Kafka broker of tests, in Java. `python -m tests.support.kafka_broker` downloads it, and the source of Spark.

It listens on free ports of the loopback address, and keeps everything in a folder of its test.
"""

import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.rest_catalog import fetch, is_fetched
from tests.support.server_process import ServerProcess, free_ports

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".tools" / "kafka"
FOR_SPARK = ROOT / ".tools" / "kafka-spark"
"""What Spark needs for topics. Only the benchmark does so."""

USER, PASSWORD = "compactor", "right"

_SHORT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-Xshare:auto")
_CLUSTER_ID = "Q29tcGFjdG9yVGVzdHMxMQ"


def is_there() -> bool:
    """Whether a broker can be started."""
    return is_fetched(FOLDER)


class KafkaBroker:
    """A process with a broker and its controller. Use it as a context manager.

    Args:
        folder: For its logs, its settings and what it prints.
        beside: The broker whose cluster it joins, as number 2 and without a controller; None for a cluster of its own.
    """

    def __init__(self, folder: Path, beside: Self | None = None) -> None:
        self._folder, self._is_second = folder, beside is not None
        self._port, self._secured_port, self._controller_port = free_ports(3)
        if beside is not None:
            self._controller_port = beside._controller_port
        self._process = ServerProcess("the broker", folder / "broker.log", self._answers)

    @property
    def servers(self) -> str:
        """Its address, which stays the same when it is started again."""
        return f"127.0.0.1:{self._port}"

    @property
    def secured(self) -> dict[str, str]:
        """The properties of a connection as a user whose password is `PASSWORD`, which they leave out."""
        servers = f"127.0.0.1:{self._secured_port}"
        sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": USER}
        return {"bootstrap.servers": servers, **sasl}

    def __enter__(self) -> Self:
        self._settings().write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        self._run_to_end("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._settings()))
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process.start([*self._java(), "kafka.Kafka", str(self._settings())])

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()

    def _answers(self) -> bool:
        # The client is loaded by those tests alone that have a broker.
        from confluent_kafka import KafkaException  # noqa: PLC0415
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415

        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                pass
            silent = {"bootstrap.servers": self.servers, "log_level": 0}
            return bool(AdminClient(silent).list_topics(timeout=5).brokers)
        except (OSError, KafkaException):
            return False

    def _run_to_end(self, *arguments: str) -> None:
        ended = subprocess.run([*self._java(), *arguments], capture_output=True, text=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{arguments[0]}: {ended.stdout[-1000:]}{ended.stderr[-1000:]}")

    def _java(self) -> list[str]:
        return [shutil.which("java") or "java", *_SHORT, f"-Djava.io.tmpdir={self._folder}", "-cp", f"{FOLDER}/*"]

    def _settings(self) -> Path:
        return self._folder / "server.properties"

    def properties(self) -> dict[str, object]:
        """What it is started with."""
        address, controller = f"127.0.0.1:{self._port}", f"127.0.0.1:{self._controller_port}"
        listeners = f"PLAINTEXT://{address},SECURED://127.0.0.1:{self._secured_port}"
        return {
            "process.roles": "broker" if self._is_second else "broker,controller",
            "node.id": 2 if self._is_second else 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": listeners if self._is_second else f"{listeners},CONTROLLER://{controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured.plain.sasl.jaas.config": (
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
            "log.dirs": self._folder / "logs",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.backoff.ms": 100,
            "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
            "num.io.threads": 2,
            "num.network.threads": 2,
        }


if __name__ == "__main__":
    for each in (FOLDER, FOR_SPARK):
        fetch(each)
