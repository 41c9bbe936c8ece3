"""Kills the process at the other end of a connection, as Linux shows it, if it is a Python worker of Spark."""

import os
import signal
from contextlib import suppress
from pathlib import Path

_WORKER = b"pyspark.worker"  # an argument of the daemon, whose command line its forks, the workers, keep


def kill_worker(client_port: int, server_port: int) -> bool:
    """Kill the worker that has a connection open; return whether there was one.

    Args:
        client_port: Its own port, on this machine.
        server_port: The port that it is connected to.
    """
    inode = _inode(client_port, server_port)
    process = _owner(f"socket:[{inode}]") if inode else None
    if process is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    return True


def _inode(client_port: int, server_port: int) -> str:
    """The inode of the client's socket; empty if it is closed."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        ports = [int(address.rpartition(":")[2], 16) for address in fields[1:3]]
        if ports == [client_port, server_port]:
            return fields[9]
    return ""


def _owner(link: str) -> int | None:
    """The worker that has a file of this name open."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it ended meanwhile
            if entry.name.isdigit() and _is_worker(entry) and _has_open(entry, link):
                return int(entry.name)
    return None


def _is_worker(process: Path) -> bool:
    return _WORKER in (process / "cmdline").read_bytes()


def _has_open(process: Path, link: str) -> bool:
    return any(str(file.readlink()) == link for file in (process / "fd").iterdir())
