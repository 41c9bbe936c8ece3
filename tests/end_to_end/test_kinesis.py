"""Streams on a server of Kinesis, through landing, planning and the job, against the log of their producer."""

import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compactor.wiring import streaming
from tests.support.extras import KINESIS, NATIVE
from tests.support.kinesis_server import KinesisServer
from tests.support.kinesis_streams import ID, StreamFeed, kinesis_settings
from tests.support.settings_files import write_settings
from tests.support.workspace import Workspace

KINESIS.need()
NATIVE.need()

RESHARDS = 20
SECONDS = 300.0


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KinesisServer]:
    with KinesisServer(tmp_path_factory.mktemp("kinesis")) as found:
        yield found


def workspace(root: Path, server: KinesisServer) -> Workspace:
    more = {"stream": {"source": "listing"}, "builder": {"target_manifest_bytes": 100_000}}
    return Workspace(root, write_settings(root, **kinesis_settings(server.url, **more)))


def ids_in(output: Path) -> Counter[str]:
    """The ids of all rows, with how often each is there."""
    found: Counter[str] = Counter()
    for path in output.rglob("*.parquet"):
        found.update(pq.read_table(path, columns=[ID])[ID].to_pylist())
    return found


def test_every_record_is_one_row(tmp_path: Path, server: KinesisServer) -> None:
    """Over a split and a merge, with packed records, blank ones and rejects; a second plan lands nothing."""
    feed = StreamFeed(server.url, "orders")
    feed.create(2)
    feed.produce(300, packed=20)
    feed.send(b"no json", b"", b'{"id":\n"several-lines"}', b"\x1f\x8b\x08 looks compressed")
    feed.reshard()
    feed.produce(200)
    place = workspace(tmp_path, server)
    planned, code = place.json("plan", str(feed.stream))
    assert (code, planned["log"]["lines"]) == (0, len(feed.written) + 4)
    feed.reshard()
    feed.produce(100, packed=5)
    assert place.json("plan", str(feed.stream))[1] == 0
    assert streaming.threaded_job(place.app, 2).run(once=True) is not None
    assert ids_in(tmp_path / "o") == Counter([*feed.written, "several-lines"])
    again, _ = place.json("plan", str(feed.stream))
    assert (again["manifests"], again["log"]["lines"]) == ([], 0)
    for options in ((), ("--deep",)):
        verified, code = place.json("verify", *options)
        assert code == 0, verified
        assert (verified["rejected_lines"], verified["blank_lines"]) == (2, 1)


def started(place: Workspace, *arguments: str) -> subprocess.Popen[bytes]:
    """A command as a process of its own."""
    command = [sys.executable, "-m", "compactor", "--config", str(place.config), *arguments]
    with (place.root / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def killed(process: subprocess.Popen[bytes], after_seconds: float) -> bool:
    """Let a process run for a while, then end it at once; whether it was still running."""
    try:
        process.wait(after_seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait(SECONDS)
        return True
    return False


@pytest.mark.full
def test_nothing_is_lost_or_doubled(tmp_path: Path, server: KinesisServer) -> None:
    """Over many splits and merges under load, with two planners at once and a job, all of which are killed."""
    chance, kills = random.Random(5), 0
    feed = StreamFeed(server.url, "storm")
    feed.create(2)
    place = workspace(tmp_path, server)
    with feed.producing():
        for number in range(RESHARDS):
            processes = [started(place, "plan", str(feed.stream)) for _ in range(2)]
            if number % 4 == 3:
                processes.append(started(place, "run", "--once"))
            feed.reshard()
            kills += sum(killed(each, chance.uniform(0.2, 3.0)) for each in processes)
    for _ in range(2):
        assert started(place, "plan", str(feed.stream)).wait(SECONDS) == 0
        assert started(place, "run", "--once").wait(SECONDS) == 0
    assert ids_in(tmp_path / "o") == Counter(feed.written)
    verified, code = place.json("verify", "--deep")
    assert code == 0, verified
    assert verified["rows"] == len(feed.written)
    assert kills > RESHARDS / 2
    assert place.json("plan", str(feed.stream))[0]["log"]["lines"] == 0
