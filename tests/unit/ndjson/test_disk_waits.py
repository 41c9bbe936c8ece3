"""Which reads wait for a disk."""

import time

import pytest

from compactor.ndjson.files.object_reading import DiskWaits


def working() -> int:
    """Takes a processor's time, as a read from memory does; so little that a busy machine often leaves it alone."""
    until = time.thread_time() + 0.001
    while time.thread_time() < until:
        pass
    return 1


def waiting() -> int:
    """Sleeps far longer than a busy machine would delay it."""
    time.sleep(0.5)
    return 2


def test_the_last_read_counts() -> None:
    """Before the first one there is nothing to tell by, and an error tells as well."""
    disk = DiskWaits()
    assert not disk.has_waited()
    assert (disk.measured(waiting), disk.has_waited()) == (2, True)

    def failing() -> None:
        waiting()
        raise KeyError(1)

    assert any((disk.measured(working), disk.has_waited()) == (1, False) for _ in range(1_000))
    with pytest.raises(KeyError):
        disk.measured(failing)
    assert disk.has_waited()
