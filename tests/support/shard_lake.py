"""A prefix with real jobs of shards over it, in processes of their own: delivers, starts, stops, kills and counts."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from compactor.core.rules.sharding import taker

DAY = "2026-01-02"
LINE = b'{"n": %d, "user": "u-%d", "amount": 1.10, "text": "%s"}\n'

_SETTINGS = """
[paths]
manifests = "{folder}/manifests"
output = "{folder}/output"
state = "{folder}/state"
[input]
allowed_prefixes = ["{folder}/raw"]
[stream]
source = "listing"
trigger_interval_seconds = 1
[convert]
engine = "native"
[metrics]
sink = "none"
"""


@dataclass(slots=True)
class ShardLake:
    """Input whose lines have numbers of their own, manifests, and jobs by their shard."""

    folder: Path
    jobs: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    lines: "itertools.count[int]" = field(default_factory=itertools.count)
    delivered: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("raw", "manifests"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "compactor.toml").write_text(_SETTINGS.format(folder=self.folder))

    def names(self, shard: int, of: int, number: int) -> list[str]:
        """New ids of manifests of one shard."""
        start = len(self.delivered)
        found = (f"m-{each:06}" for each in itertools.count(start * 100))
        return list(itertools.islice((name for name in found if taker(name, range(1, of + 1)) == shard), number))

    def deliver(self, *names: str, lines: int = 100, wide: int = 20) -> None:
        """Write input and manifests."""
        for name in names:
            path = self.folder / "raw" / f"{DAY}-{name}.ndjson"
            text = b"x" * wide
            path.write_bytes(b"".join(LINE % (number, number % 97, text) for number in self._next(lines)))
            files = [{"uri": str(path), "size_bytes": path.stat().st_size}]
            created = f"{DAY}T10:00:00Z"
            manifest = {"version": 1, "manifest_id": name, "date": DAY, "created_at": created, "files": files}
            draft = self.folder / f"{name}.draft"
            draft.write_text(json.dumps(manifest))
            draft.rename(self.folder / "manifests" / f"{name}.json")
            self.delivered.append(name)

    def _next(self, lines: int) -> Iterator[int]:
        return itertools.islice(self.lines, lines)

    def start(self, shard: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Start the job of a shard; an empty shard is the only job."""
        command = [sys.executable, "-m", "compactor", "--config", str(self.folder / "compactor.toml"), "run", *words]
        with (self.folder / f"job-{shard.replace('/', '-')}.log").open("ab") as log:
            self.jobs[shard] = subprocess.Popen(
                [*command, *(["--shard", shard] if shard else [])],
                stdout=log,
                stderr=log,
                env={**os.environ, **(env or {})},
            )

    def signal(self, shard: str, number: signal.Signals) -> None:
        """Send a signal to a job; of one that dies, wait for the end."""
        self.jobs[shard].send_signal(number)
        if number is signal.SIGKILL:
            self.jobs.pop(shard).wait()

    def stop(self) -> list[int]:
        """Ask all jobs to end; returns their exit codes."""
        for job in self.jobs.values():
            job.send_signal(signal.SIGTERM)
        codes = [job.wait(120) for job in self.jobs.values()]
        self.jobs.clear()
        return codes

    def has_begun(self, shard: str) -> bool:
        """Whether the job of a shard has sent a heartbeat, so that it ends in order when it is asked to."""
        beats = (self.folder / "state" / "runs").glob("*.json")
        return any(json.loads(path.read_bytes()).get("process_id") == self.jobs[shard].pid for path in beats)

    def done(self) -> set[str]:
        """The manifests that are done."""
        return {path.parent.name for path in (self.folder / "state" / "ledger").glob("*/*/done.json")}

    def seconds_until(self, is_true: Callable[[], bool], longest: float) -> float:
        """Wait; returns how long it took."""
        began = time.monotonic()
        while not is_true():
            waited = time.monotonic() - began
            assert waited < longest, f"not after {waited:.0f} s; {len(self.done())} of {len(self.delivered)} are done"
            assert all(job.poll() is None for job in self.jobs.values()), "a job has ended"
            time.sleep(0.1)
        return time.monotonic() - began

    def seconds_until_all_done(self, longest: float) -> float:
        """Wait until everything that was delivered is done; returns how long it took."""
        return self.seconds_until(lambda: self.done() >= {*self.delivered}, longest)

    def seconds_at_work(self) -> float:
        """The time from the first attempt to the last manifest that is done."""
        ledger = self.folder / "state" / "ledger"
        began = min(path.stat().st_mtime for path in ledger.glob("*/*/attempt-1.json"))
        return max(path.stat().st_mtime for path in ledger.glob("*/*/done.json")) - began

    def attempts(self) -> int:
        """How many attempts there were."""
        return len(list((self.folder / "state" / "ledger").glob("*/*/attempt-?.json")))

    def runs_at_work(self) -> Counter[str]:
        """How many manifests each run has committed."""
        outcomes = (self.folder / "state" / "ledger").glob("*/*/outcome.json")
        return Counter(str(json.loads(path.read_bytes()).get("run_id")) for path in outcomes)

    def check_exact(self) -> None:
        """Every line that was written is one row, by its number; and the ledger agrees."""
        files = (self.folder / "output").rglob("*.parquet")
        rows = Counter(int(number) for path in files for number in pq.read_table(path, columns=["n"])["n"].to_pylist())
        assert rows == Counter(range(next(self.lines)))
        assert not list((self.folder / "manifests").glob("*.json"))
        command = [
            sys.executable,
            "-m",
            "compactor",
            "--config",
            str(self.folder / "compactor.toml"),
            "verify",
            "--deep",
        ]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr
