"""Feeds topics to a job that is killed again and again, and compares what came out with the producers' own log.

python -m tests.soak.topics --records 10000000 --kills 50 --seed 7

Twelve partitions, two of which come later; transactions that are committed and aborted; a compacted topic; planners and
two jobs at once, that are killed; a broker that is killed; caches of the state that are deleted; and retention that
overtakes one partition, both before and after it is planned. Every committed record has to be one row, except what a
quarantined range names.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from compactor.core.logs.names import LogGap
from tests.soak.topic_log import WRITTEN, KeyedLog, TopicLog
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_topics import TopicFeed, kafka_settings
from tests.support.settings_files import write_settings

PARTITIONS, LATE_PARTITIONS = 10, 2
OVERTAKEN = 2
KEYED_SHARE = 50  # one record in so many is in the compacted topic
_COMPACTED = {
    "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "500", "max_compaction_lag_ms": "1",
}  # fmt: skip
_PATIENCE_SECONDS = 1800.0


def main(words: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(prog="python -m tests.soak.topics")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=50, help="of jobs; planners are killed beside them")
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="topics-"))
    faults = run(folder, records=chosen.records, kills=chosen.kills, seed=chosen.seed)
    if faults:
        _say("\n".join(["NOT EXACT", *faults, f"what is left to look at is in {folder}"]))
        return 1
    shutil.rmtree(folder)
    return 0


def run(folder: Path, *, records: int, kills: int, seed: int) -> list[str]:
    """Feed topics and kill jobs; returns what is not as it has to be.

    Args:
        folder: For the broker, the state and the output.
        records: How many to produce, about.
        kills: Of jobs, at least.
        seed: Of all chance.
    """
    (folder / "broker").mkdir()
    with KafkaBroker(folder / "broker") as broker:
        course = Course(folder, broker, records, kills, random.Random(seed))
        course.begin()
        while course.killed < kills or course.produced < records:
            course.round()
        course.end()
        return course.faults()


@dataclass
class Course:
    """One run."""

    folder: Path
    broker: KafkaBroker
    records: int
    kills: int
    chance: random.Random
    rounds: int = 0
    killed: int = 0
    broker_kills: int = 0
    removed_before: int = 0
    began_at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        servers = self.broker.servers
        self.log = TopicLog(TopicFeed(servers, "flood"), self.chance)
        self.keyed = KeyedLog(TopicFeed(servers, "keyed"), self.chance)
        settings = kafka_settings(servers)
        settings |= {"stream": {"source": "listing"}, "builder": {"target_manifest_bytes": 5_000_000}}
        self.config = write_settings(self.folder, **settings)

    @property
    def produced(self) -> int:
        return len(self.log.fate) + len(self.keyed.fate)

    def begin(self) -> None:
        """Make the topics, and begin their chains at offset 0."""
        self.log.feed.create(PARTITIONS)
        self.keyed.feed.create(1, **_COMPACTED)
        for each in ("flood", "keyed"):
            self._to_end("plan", f"kafka://main/{each}")

    def round(self) -> None:
        """Feed some records, while planners and two jobs run that are killed."""
        self.rounds += 1
        middle = self.kills // 2
        if self.rounds == middle:
            self.log.grow(PARTITIONS + LATE_PARTITIONS)
        feeds_first = self.rounds % 10 == 0 or self.rounds == middle + 5
        if feeds_first:
            self._feed()
        if self.rounds % 5 == 3:
            self._delete_caches()
        if self.rounds == middle + 5:  # overtaken before it is planned
            self._overtake(0.7)
        with ThreadPoolExecutor(1) as pool:
            feeding = None if feeds_first or self.produced >= self.records else pool.submit(self._feed)
            processes = [self._started("plan", f"kafka://main/{each}") for each in ("flood", "flood", "keyed")]
            jobs = [self._started("run") for _ in range(2)]
            if self.rounds % 10 == 0:
                time.sleep(self.chance.uniform(0.5, 2))
                self.broker.kill()
                self.broker_kills += 1
                time.sleep(self.chance.uniform(0, 2))
                self.broker.start()
            self.killed += sum(_killed(each, self.chance.uniform(0.5, 3)) for each in jobs)
            for each in processes:
                _killed(each, self.chance.uniform(0, 1))
            if feeding is not None:
                feeding.result()
        if self.rounds == middle + 8:  # overtaken after it is landed, which takes nothing
            self._to_end("plan", "kafka://main/flood")
            self._overtake(0.9)
        if self.rounds % 10 == 0:
            self._tell()

    def end(self) -> None:
        """Let all be planned and done, with what is left of quarantined ranges."""
        for _ in range(2):
            for each in ("flood", "keyed"):
                self._to_end("plan", f"kafka://main/{each}")
            self._to_end("run", "--once")
        self._to_end("redrive", "files")
        self._to_end("run", "--once")
        self._tell()

    def faults(self) -> list[str]:
        """What is not as it has to be; and says what is."""
        verified = self._json("verify")
        named = [LogGap.parse(each["uri"]) for each in verified["quarantined_files"] if not each["redriven"]]
        rows = _rows(self.folder / "o")
        log, faults = self.log, [str(each) for each in verified["discrepancies"]]
        gone = {offset for each in named for offset in range(each.after, each.before - 1)}
        strange = [
            str(each) for each in named if each.partition_id != str(OVERTAKEN) or each.before - 1 > self.removed_before
        ]
        faults += [f"named as missing, but there: {each}" for each in strange]
        lost = doubled = unexpected = missing = 0
        for number, fate in enumerate(log.fate):
            expected = fate == WRITTEN
            if expected and log.partitions[number] == OVERTAKEN and log.offsets[number] in gone:
                expected, missing = False, missing + 1
            found = rows["flood"].get(number, 0)
            lost += expected and not found
            doubled += found > 1
            unexpected += bool(found) and not expected
        keyed_lost, keyed_doubled = self._keyed_faults(rows["keyed"])
        counts = {
            "lost": lost, "doubled": doubled, "without a committed record": unexpected,
            "lost of the compacted topic": keyed_lost, "doubled or strange of it": keyed_doubled,
            "unfinished manifests": verified["unfinished"],
        }  # fmt: skip
        _say(f"{log.written:,} committed of {len(log.fate):,}, {log.feed.name}; {sum(rows['flood'].values()):,} rows")
        _say(f"{self.keyed.written:,} of the compacted topic; {sum(rows['keyed'].values()):,} rows")
        _say(f"named as missing: {', '.join(map(str, named)) or 'nothing'}, with {missing:,} committed records")
        _say(", ".join(f"{count:,} {what}" for what, count in counts.items()))
        if not named:
            faults.append("retention overtook nothing")
        return faults + [f"{count:,} {what}" for what, count in counts.items() if count]

    def _keyed_faults(self, rows: dict[int, int]) -> tuple[int, int]:
        """The last records of keys that have no row; and rows that are there twice, or of no committed record."""
        last = {number % KeyedLog.KEYS: number for number, fate in enumerate(self.keyed.fate) if fate == WRITTEN}
        strange = sum(count > 1 or self.keyed.fate[number] != WRITTEN for number, count in rows.items())
        return sum(number not in rows for number in last.values()), strange

    def _feed(self) -> None:
        share = max(1, self.records // self.kills)
        keyed = share // KEYED_SHARE
        self.keyed.write(0, keyed)
        partitions = PARTITIONS + (LATE_PARTITIONS if self.rounds >= self.kills // 2 else 0)
        for partition in range(partitions):
            write = self.log.transact if partition % 2 else self.log.write
            write(partition, (share - keyed) // partitions)

    def _overtake(self, part: float) -> None:
        """Retention removes records of one partition up to a part of those that it has."""
        offsets = [at for each, at in zip(self.log.partitions, self.log.offsets, strict=True) if each == OVERTAKEN]
        newest = sorted(offsets)[-len(offsets) // max(self.rounds, 1) :]
        self.removed_before = newest[int(len(newest) * part)]
        self.log.feed.remove_before(OVERTAKEN, self.removed_before)
        _say(f"round {self.rounds}: retention removes what is before offset {self.removed_before} of partition 2")

    def _delete_caches(self) -> None:
        for hint in (self.folder / "s").rglob("hint"):
            hint.unlink()
        for index in (self.folder / "s").glob("*-index"):
            shutil.rmtree(index)
        for each in ("checkpoint", "closed.json"):
            shutil.rmtree(self.folder / "s" / each, ignore_errors=True)

    def _started(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "compactor", "--config", str(self.config), *arguments]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _to_end(self, *arguments: str) -> None:
        code = self._started(*arguments).wait(_PATIENCE_SECONDS)
        if code not in {0, 3}:
            raise RuntimeError(f"compactor {' '.join(arguments)}: exit code {code}; see {self.folder / 'log'}")

    def _json(self, *arguments: str) -> Any:
        command = [sys.executable, "-m", "compactor", "--config", str(self.config), *arguments, "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=False, text=True).stdout)

    def _tell(self) -> None:
        seconds = time.monotonic() - self.began_at
        _say(
            f"{seconds:,.0f} s: {self.rounds} rounds, {self.produced:,} records, {self.killed} jobs and "
            f"{self.broker_kills} brokers killed"
        )


def _killed(process: subprocess.Popen[bytes], after_seconds: float) -> bool:
    """Let a process run for a while, then end it at once; whether it was still running."""
    try:
        process.wait(after_seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait(_PATIENCE_SECONDS)
        return True
    return False


def _rows(output: Path) -> dict[str, dict[int, int]]:
    """By topic, how often each record is a row."""
    found: dict[str, dict[int, int]] = {"flood": {}, "keyed": {}}
    for path in sorted(output.rglob("*.parquet")):
        table = pq.read_table(path, columns=["id", "_source_file"])
        for number, source in zip(table["id"].to_pylist(), table["_source_file"].to_pylist(), strict=True):
            counts = found["keyed" if "/keyed/" in source else "flood"]
            counts[int(number)] = counts.get(int(number), 0) + 1
    return found


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a program


if __name__ == "__main__":
    sys.exit(main())
