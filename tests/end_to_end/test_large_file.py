"""One file far larger than memory should have to hold. Takes minutes and 3 GB of disk: `make test-large`."""

import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from compactor.demo.events import make_event_lines
from tests.faults.conftest import Lake, lake

__all__ = ["lake"]

FILE_BYTES = 1_500_000_000
PYTHON_LIMIT_BYTES = 600 * 1024 * 1024
JVM_HEAP_OPTION = "-Xmx4g"


class Watch(threading.Thread):
    """The largest resident size of each process of a tree, by what it runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(process.pid)
        self.peaks: dict[str, int] = defaultdict(int)
        self.java_options: set[str] = set()

    def run(self) -> None:
        while self._root.is_running() and self._root.status() != psutil.STATUS_ZOMBIE:
            try:
                for each in [self._root, *self._root.children(recursive=True)]:
                    kind = "java" if "java" in each.name() else "python"
                    self.peaks[kind] = max(self.peaks[kind], each.memory_info().rss)
                    if kind == "java":
                        self.java_options.update(each.cmdline())
            except psutil.Error:
                pass
            time.sleep(0.1)


def write_large_file(path: Path) -> int:
    """Write the file; returns its lines."""
    block = make_event_lines(7, 50_000)
    lines = 0
    with path.open("wb") as file:
        while file.tell() < FILE_BYTES:
            file.write(block)
            lines += 50_000
    return lines


@pytest.mark.large
@pytest.mark.timeout(1800)
def test_memory_does_not_grow_with_the_size_of_a_file(lake: Lake) -> None:
    """1.5 GB in one file: every Python process stays under 600 MiB, the JVM within 4 GiB, and the rows are exact."""
    lines = write_large_file(lake.folder / "input" / "2025-12-21-large.ndjson")
    code, output = lake.run("plan", str(lake.folder / "input"))
    assert code == 0, output
    job = lake.start("run", "--once")
    watch = Watch(job)
    watch.start()
    output, _ = job.communicate(timeout=1500)
    assert job.returncode == 0, output
    watch.join()
    written = list((lake.folder / "output").rglob("*.parquet"))
    assert sum(pq.read_metadata(path).num_rows for path in written) == lines
    assert watch.peaks["python"] < PYTHON_LIMIT_BYTES
    assert JVM_HEAP_OPTION in watch.java_options
    sizes = [path.stat().st_size for path in written]
    sys.stdout.write(f"{lines} rows, files {sizes}, peaks {dict(watch.peaks)}\n")
