"""The demo with a topic of Kafka as input: a broker, a day of events, the commands of a user, and a comparison."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from compactor.adapters.local.native.module import is_installed
from compactor.core.errors import CompactorError, SettingsError
from compactor.core.extras import need
from compactor.core.text.formatting import size
from compactor.demo.commands import Commands, Echo, own_variables, work_folder
from compactor.demo.events import DayCounts, Flaws, write_day
from compactor.demo.outcome import is_exact, read_outcome, rows_out
from compactor.demo.scene import SEED
from compactor.settings.toml import toml_of
from compactor.settings.types import MIB
from compactor.wiring.app import App
from compactor.wiring.settings_files import settings_at

CLUSTER, TOPIC, PARTITIONS = "local", "orders", 3
_TRACED = 17  # any offset


def run_kafka_demo(total_bytes: int, jars: Path, echo: Echo) -> bool:
    """Run the demo; return whether the output matches the topic exactly. Leaves no files.

    Raises:
        SettingsError: There is no Java, or no broker.
        ExtraMissing: The client is not installed.
        CompactorError: The broker or a command failed.
    """
    check_broker(jars)
    with ExitStack() as stack:
        work = stack.enter_context(work_folder())
        echo("Starting a Kafka broker on the loopback address ...")
        broker = work / "broker"
        broker.mkdir()
        servers = stack.enter_context(kafka_broker(jars, broker))
        echo(f"Writing {size(total_bytes)} of events to {PARTITIONS} partitions of the topic {TOPIC} ...")
        made = _produce(servers, total_bytes)
        environment = own_variables()
        config = work / "demo.toml"
        config.write_text(_settings(work, servers))
        commands = Commands({**environment, "COMPACTOR_CONFIG": str(config)}, echo)
        topic = f"kafka://{CLUSTER}/{TOPIC}"
        commands.run("plan", topic)
        commands.run("run", "--once")
        commands.run("verify", "--deep")
        commands.run("status")
        commands.run("trace", f"{topic}/0?offset={_TRACED}")
        echo("", "A second plan finds nothing new:")
        commands.run("plan", topic)
        found = read_outcome(App(settings_at(str(config), environment)))
        records = ("records", f"{made.lines:,} of {size(made.decoded_bytes)}")
        return is_exact(made, found, "Topic and output", [records, *rows_out(made, found)], echo, in_files=False)


def _produce(servers: str, total_bytes: int) -> DayCounts:
    """Write the lines of the day as values, with bad ones of every kind."""
    from compactor.adapters.kafka.local_setup import TopicWriter, make_topic  # noqa: PLC0415 - it needs the client

    make_topic(servers, TOPIC, PARTITIONS)
    writer = TopicWriter(servers, TOPIC)

    def write(_name: str, data: bytes) -> None:
        values = data.split(b"\n")[:-1]
        for partition in range(PARTITIONS):
            writer.write(partition, values[partition::PARTITIONS])

    return write_day(write, seed=SEED, total_bytes=total_bytes, flaws=Flaws(2, late_key=True))


def _settings(work: Path, servers: str) -> str:
    names = ("manifests", "output", "state")
    native = is_installed()
    return toml_of(
        {
            "paths": {name: str(work / name) for name in names},
            "input": {"allowed_prefixes": [f"kafka://{CLUSTER}/{TOPIC}"]},
            "output": {"target_file_bytes": 8 * MIB},
            "stream": {"source": "listing" if native else "spark"},
            "metrics": {"sink": "none"},
            "spark": {"conf": {"spark.master": "local[*]"}},
            "kafka": {"clusters": {CLUSTER: {"bootstrap.servers": servers}}},
        }
    )


JARS = Path(".tools/kafka")
"""Where `make demo SOURCE=kafka` stores a broker."""

_START_SECONDS = 120.0
_END_SECONDS = 30.0
_CLUSTER_ID = "Q29tcGFjdG9yRGVtb3MxMQ"
_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")


def check_broker(jars: Path) -> None:
    """Check that a broker can be started, before any work.

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
    """Run a broker, and stop it; yields its address.

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
