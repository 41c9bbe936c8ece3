"""The demo with a topic of Kafka as input: a broker, a day of events, the commands of a user, and a comparison."""

import os
import signal
import tempfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from compactor.adapters.local.native.kernel import is_installed
from compactor.core.text.formatting import by_name, count, size
from compactor.demo.commands import Commands, Echo, Terminated
from compactor.demo.events import DayCounts, Flaws, write_day
from compactor.demo.kafka_broker import check_broker, kafka_broker
from compactor.demo.outcome import REASON_OF_KIND, Outcome, read_outcome
from compactor.settings.toml import toml_of
from compactor.settings.types import MIB
from compactor.wiring.job.app import App
from compactor.wiring.settings_files import settings_at

CLUSTER, TOPIC, PARTITIONS = "local", "orders", 3
_SEED = 20251221
_TRACED = 17  # any offset


def run_kafka_demo(total_bytes: int, jars: Path, echo: Echo) -> bool:
    """Run the demo; return whether the output holds exactly what the topic held. It leaves nothing behind.

    Args:
        total_bytes: The size of the values.
        jars: Has the jars of a broker.
        echo: Prints.

    Raises:
        SettingsError: There is no Java, or no broker.
        ExtraMissing: The client is not installed.
        CompactorError: The broker or a command failed.
    """
    check_broker(jars)
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _terminate))
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="compactor-demo-")))
        echo("Starting a broker of Kafka on the loopback address ...")
        broker = work / "broker"
        broker.mkdir()
        servers = stack.enter_context(kafka_broker(jars, broker))
        echo(f"Writing {size(total_bytes)} of events to {PARTITIONS} partitions of the topic {TOPIC} ...")
        made = _produce(servers, total_bytes)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COMPACTOR_")}
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
        echo("", "Topic and output", *_rows(made, found))
        faults = differences(made, found)
        for fault in faults:
            echo(f"compactor: {fault}", err=True)
        return not faults


def _produce(servers: str, total_bytes: int) -> DayCounts:
    """Write the lines of the day as values, with bad ones of every kind."""
    from compactor.adapters.kafka.local_setup import TopicWriter, make_topic  # noqa: PLC0415 - it needs the client

    make_topic(servers, TOPIC, PARTITIONS)
    writer = TopicWriter(servers, TOPIC)

    def write(_name: str, data: bytes) -> None:
        values = data.split(b"\n")[:-1]
        for partition in range(PARTITIONS):
            writer.write(partition, values[partition::PARTITIONS])

    return write_day(write, seed=_SEED, total_bytes=total_bytes, flaws=Flaws(2, late_key=True))


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
            "spark": {"master": "local[*]"},
            "kafka": {"clusters": {CLUSTER: {"bootstrap.servers": servers}}},
        }
    )


def differences(made: DayCounts, found: Outcome) -> list[str]:
    """Each difference between topic and output in words; empty if there is none."""
    rejects = Counter[str]()
    for kind, lines in made.bad_lines.items():
        rejects[REASON_OF_KIND[kind]] += lines
    verification = found.verification
    pairs: list[tuple[str, object, object]] = [
        ("records", made.lines, verification.lines - verification.blank_lines),
        ("rows", made.records, verification.rows),
        ("rejects by reason", dict(sorted(rejects.items())), dict(sorted(verification.rejects_by_reason.items()))),
        ("manifests not done", 0, verification.unfinished),
        ("discrepancies", 0, len(verification.discrepancies)),
    ]
    return [f"{what}: {had} went in, {has} came out" for what, had, has in pairs if had != has]


def _rows(made: DayCounts, found: Outcome) -> list[str]:
    verification = found.verification
    rows = [
        ("records", f"{made.lines:,} of {size(made.decoded_bytes)}"),
        ("rows", f"{verification.rows:,} of {made.records:,} expected"),
        ("rejects", f"{by_name(verification.rejects_by_reason)}; {sum(made.bad_lines.values()):,} expected"),
        ("output", f"{count(len(found.output_sizes), 'file')}, {size(sum(found.output_sizes))}"),
    ]
    return [f"  {name:12}{value}" for name, value in rows]


def _terminate(_number: int, _frame: object) -> None:
    raise Terminated
