"""A standalone Spark cluster on this machine: a master and workers, every process with a folder of its own."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

PATIENCE_SECONDS = 240
_SPARK_HOME = Path(pyspark.__file__).parent
_LAUNCHER = str(_SPARK_HOME / "bin" / "spark-class")
_LOCAL = ("--host", "127.0.0.1", "--webui-port", "0", "--port", "0")
_TASK = re.compile(r"(Running|Finished) task \S+ in stage \S+ \(TID (\d+)\)")


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker with one core, its executors, and their folder."""

    folder: Path
    process: subprocess.Popen[bytes]

    def running_tasks(self) -> set[str]:
        """Tasks that its executors began and did not finish, by their logs."""
        running: set[str] = set()
        for log in self.folder.glob("app-*/*/stderr"):
            for what, task in _TASK.findall(log.read_text()):
                if what == "Running":
                    running.add(task)
                else:
                    running.discard(task)
        return running

    def signal(self, number: signal.Signals) -> int:
        """Send a signal to the worker, its executors and their Python processes; how many there were."""
        return sum(_signal(each, number) for each in _tree(self.process.pid))

    def kill_python(self) -> int:
        """Kill the Python processes that its executors forked for tasks; how many there were."""
        daemons = [each for each in _tree(self.process.pid) if b"pyspark.daemon" in _command(each)]
        forked = [each for daemon in daemons for each in _tree(daemon)[1:]]
        return sum(_signal(each, signal.SIGKILL) for each in dict.fromkeys(forked))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that runs.

    Attributes:
        url: Of its master.
    """

    url: str
    workers: tuple[Worker, ...]


@contextmanager
def standalone_cluster(folder: Path, environment: Mapping[str, str], *, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers with one core each.

    Args:
        folder: Where each of them gets a folder and a log.
        environment: What they find in their environment, besides that of this process.
        workers: How many.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, own: Path, pattern: str, *command: str) -> str:
        log = folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [_LAUNCHER, *command],
                cwd=own,
                env={**os.environ, **environment, "SPARK_HOME": str(_SPARK_HOME)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        processes.append(process)
        return _said(process, log, pattern)

    try:
        master = ("org.apache.spark.deploy.master.Master", *_LOCAL)
        url = start("master", folder, r"Starting Spark master at (spark://\S+)", *master)
        folders = [folder / f"worker-{number}" for number in range(1, workers + 1)]
        for own in folders:
            own.mkdir()
            limits = ("-c", "1", "-m", "1g", "--work-dir", str(own))
            worker = ("org.apache.spark.deploy.worker.Worker", *_LOCAL, *limits, url)
            start(own.name, own, r"(Successfully registered with master)", *worker)
        yield Cluster(url, tuple(map(Worker, folders, processes[1:])))
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(timeout=60)


def _said(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """Wait for what a part of the cluster says of itself."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := re.search(pattern, log.read_text())):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return found.group(1)


def _signal(process_id: int, number: signal.Signals) -> bool:
    """Send a signal; returns False if the process has ended meanwhile, as those that work for others do at any time."""
    try:
        os.kill(process_id, number)
    except ProcessLookupError:
        return False
    return True


def _tree(process_id: int) -> list[int]:
    """A process and all below it, the parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [process_id]
    for each in found:
        found += children.get(each, [])
    return found


def _command(process_id: int) -> bytes:
    try:
        return Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return b""
