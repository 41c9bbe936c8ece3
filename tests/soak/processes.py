"""The processes of a job, as Linux shows them: every one of its session, whatever group it moved to."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """One living process.

    Attributes:
        name: Of its program, cut as the kernel cuts it.
        resident_bytes: Memory that is not swapped out; what it shares with others counts in each of them.
    """

    process_id: int
    name: str
    resident_bytes: int


def of_session(session: int) -> Iterator[Process]:
    """The living processes of a session.

    Args:
        session: The process id of its leader, which may be gone.
    """
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it ended meanwhile
                head, _, tail = (entry / "stat").read_text().rpartition(")")
                fields = tail.split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    yield Process(int(entry.name), head.partition("(")[2], int(fields[21]) * _PAGE_BYTES)


def kill(processes: Iterator[Process]) -> int:
    """End them by SIGKILL; how many there were."""
    count = 0
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process.process_id, signal.SIGKILL)
            count += 1
    return count
