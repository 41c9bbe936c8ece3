"""Facts about this machine: the time, the user, and the running processes."""

import getpass
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from compactor.core.ports import ProcessName


class SystemClock:
    """This machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def person() -> str:
    """The user and the machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have no user name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


class MachineProcesses:
    """The operating system's processes."""

    def this(self) -> ProcessName:
        return ProcessName(_host(), os.getpid())

    def is_gone(self, process: ProcessName) -> bool:
        if process.host != _host():
            return False
        try:
            os.kill(process.process_id, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it runs as a different user
            return False
        return _is_zombie(process.process_id)


def _is_zombie(process_id: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


@lru_cache(maxsize=1)
def _host() -> str:
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - the link has no target; its text is the name
    return " ".join(parts)
