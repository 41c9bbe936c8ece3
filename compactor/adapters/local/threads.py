"""How much this machine can do at once."""

import os

TASK_BYTES = 1_000_000_000
"""Memory that a machine should have for each task that writes an output file: more than any was seen to take."""


def usable_threads() -> int:
    """One a core that this process may use, as far as memory goes for that."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(cores, memory_bytes // TASK_BYTES))
