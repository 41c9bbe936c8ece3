"""How many tasks this machine can run at the same time."""

import os

TASK_BYTES = 1_000_000_000
"""Memory to allow for each task that writes an output file; measured tasks needed less."""


def usable_threads() -> int:
    """One thread per usable core, limited by memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, memory_bytes // TASK_BYTES))
