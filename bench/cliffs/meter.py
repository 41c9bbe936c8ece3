"""Measures what a shape costs an engine: CPU seconds of all processes, without those that any input costs."""

import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, Self

from bench.cliffs.lines import schema_file, shape_of
from bench.cliffs.points import Point
from bench.inputs import check_room
from bench.measure import end_family
from bench.shapes import Written, write_shape

STARTS = 3
"""How often the cost of a start is measured; the least counts."""

_DISK_PER_INPUT_BYTE = 3
_WARM_BYTES = 2_000_000
_REJECTS = {"COMPACTOR_INPUT__MAX_REJECTED_LINES": "1000000000", "COMPACTOR_INPUT__ON_TOO_MANY_REJECTS": "keep_rows"}
"""Files of which a share is rejected are converted at any size."""


class Meter(Protocol):
    """Tells what shapes cost."""

    def seconds(self, point: Point, total_bytes: int) -> float:
        """CPU seconds for this much of a shape, measured anew.

        Raises:
            ShapeFailed: See there.
        """

    def start(self, files: int) -> float:
        """CPU seconds of so many files of one line, measured once.

        Raises:
            ShapeFailed: They were not converted.
        """


class ShapeFailed(Exception):
    """An engine does not convert a shape, or not wholly, or only in too long a time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a measurement may take.

    Attributes:
        seconds: The longest time of one conversion.
        files: The most files of one input: of small files there is less of it.
    """

    seconds: float
    files: int


@dataclass(slots=True)
class EngineMeter:
    """Measures one engine, in a process that stays."""

    engine: str
    work: Path
    seed: int
    limits: Limits
    log: Path
    _process: "subprocess.Popen[str] | None" = None
    _log: "IO[str] | None" = None
    _starts: dict[int, float] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._log = self.log.open("w")
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        if self._log is not None:
            self._log.close()
        shutil.rmtree(self.work / "given", ignore_errors=True)

    def seconds(self, point: Point, total_bytes: int) -> float:
        """See `Meter`."""
        self._process = self._process or self._started()
        with self._written(point, total_bytes) as given:
            used = self.converted(given, point) - self.start(given.files)
            return max(used, 0.0) * total_bytes / given.decoded_bytes

    def start(self, files: int) -> float:
        """The cost of so many files of one line, rounded up to a power of two."""
        files = 2 ** math.ceil(math.log2(files))
        if files not in self._starts:
            folder = self.work / "given" / "start"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for number in range(files):
                (folder / f"{number:06d}.ndjson").write_bytes(b'{"a":1}\n')
            given = Written(folder, files, files, 8 * files, 8 * files)
            self._starts[files] = min(self.converted(given, Point()) for _ in range(STARTS))
        return self._starts[files]

    @contextmanager
    def _written(self, point: Point, total_bytes: int) -> Iterator[Written]:
        shape = shape_of(point, total_bytes)
        shape = shape.beginning(shape.file_bytes * self.limits.files)
        check_room(self.work, total_bytes * _DISK_PER_INPUT_BYTE)
        folder = self.work / "given" / "files"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            yield write_shape(shape, folder, self.seed)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def converted(self, given: Written, point: Point) -> float:
        """CPU seconds of one conversion, in all.

        Raises:
            ShapeFailed: See there.
        """
        schema = None
        if point.columns == "typed":
            schema = self.work / "given" / "schema.toml"
            schema.write_text(schema_file(point))
        answer = self._asked([str(given.folder), str(self.work / "given" / "output"), str(schema) if schema else None])
        lines = answer["rows"] + answer["rejected"]
        if not answer["failure"] and lines != given.lines:
            answer["failure"] = f"made {lines:,} rows and rejects of {given.lines:,} lines"
        if answer["failure"]:
            raise ShapeFailed(f"{self.engine}, {point.name}: {answer['failure']}")
        return float(answer["cpu_seconds"])

    def _asked(self, job: list[str | None]) -> dict[str, Any]:
        process = self._process or self._started()
        limit = threading.Timer(self.limits.seconds, end_family, (process,))
        began = time.monotonic()
        limit.start()
        try:
            print(json.dumps(job), file=process.stdin, flush=True)
            for line in process.stdout or ():
                if line.startswith('{"cpu_seconds"'):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
        except BrokenPipeError:
            pass
        finally:
            limit.cancel()
        is_late = time.monotonic() - began >= self.limits.seconds
        self._end()
        if is_late:
            raise ShapeFailed(f"{self.engine}: it took over {self.limits.seconds:,.0f} s")
        raise ShapeFailed(f"{self.engine}: its process ended; see {self.log}")

    def _started(self) -> "subprocess.Popen[str]":
        """A process that has compacted something, so that nothing is measured that it loads or compiles once."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.cliffs.converter", self.engine],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **_REJECTS},
            text=True,
            start_new_session=True,  # Ctrl-C reaches the bench alone, which then ends it
        )
        with self._written(Point(), _WARM_BYTES) as given:
            for _ in range(STARTS):
                self.converted(given, Point())
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            end_family(self._process)
        self._process = None
