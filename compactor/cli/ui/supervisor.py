"""Reports to what supervises a job: to systemd through its notify socket, to a container's probe through a file."""

import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from compactor.core.errors import AccessError
from compactor.telemetry.logs import log_event

REPORT_SECONDS = 10.0
"""How often to report. A supervisor should wait for minutes: a turn may wait for the store."""

LOG_SECONDS = 300.0

_STATUS = Path("/proc/self/status")


@dataclass(eq=False)
class Supervisor:
    """Reports progress to the supervisor, from any thread. A failed report never fails the job.

    Attributes:
        health_file: The file whose time of change is that of the last report; None for none.
        notify_socket: The socket of systemd, `NOTIFY_SOCKET`; empty for none.
    """

    health_file: Path | None = None
    notify_socket: str = ""
    _reported_at: float = field(default=float("-inf"), init=False)
    _logged_at: float = field(default=float("-inf"), init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def begin(self) -> None:
        """Touch the file.

        Raises:
            AccessError: It cannot be written.
        """
        try:
            if self.health_file is not None:
                self.health_file.touch()
        except OSError as exc:
            raise AccessError(f"--health-file {self.health_file}: {exc.strerror}; expected a writable place") from exc

    def on_turn(self) -> None:
        """Report that the job is ready and alive, if the last report is old."""
        with self._lock:
            now = time.monotonic()
            if now - self._reported_at < REPORT_SECONDS:
                return
            self._reported_at = now
            is_due = now - self._logged_at >= LOG_SECONDS
            self._logged_at = now if is_due else self._logged_at
        self._notify("READY=1\nWATCHDOG=1")
        with suppress(OSError):
            if self.health_file is not None:
                self.health_file.touch()
        if is_due:
            memory, peak = _memory()
            log_event("run.alive", memory_bytes=memory, peak_memory_bytes=peak)

    def _notify(self, state: str) -> None:
        if not self.notify_socket:
            return
        address = self.notify_socket
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


def peak_bytes() -> int | None:
    """The most resident memory that this program has had; None if unknown, as anywhere but on Linux."""
    return _memory()[1]


def _memory() -> tuple[int | None, int | None]:
    """The resident memory and its peak. `getrusage` would give that of the parent, if that had more."""
    try:
        found = dict(line.split(":") for line in _STATUS.read_text().splitlines())
        return int(found["VmRSS"].split()[0]) * 1024, int(found["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None, None
