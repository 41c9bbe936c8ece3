"""Decides which partitions may be read: a shard comes after those that it was split or merged from. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.core.logs.ports import Partition
from compactor.ledger.landing.chains import Head


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of the partitions of a log.

    Attributes:
        ready: Those that may be read now: not closed, and all parents are.
        waiting: Those that have a parent which is not.
    """

    ready: Sequence[Partition]
    waiting: Sequence[Partition]


def lineage(partitions: Sequence[Partition], heads: Mapping[str, Head | None]) -> Lineage:
    """Divide the partitions that are not closed.

    Args:
        partitions: Those that the log lists.
        heads: Of each of them, and of each parent that has a chain, where its chain ends; None without a chain.
    """
    listed = {partition.partition_id for partition in partitions}
    ready, waiting = list[Partition](), list[Partition]()
    for partition in partitions:
        head = heads.get(partition.partition_id)
        if head is not None and head.closed:
            continue
        waits = any(_is_open(heads.get(parent), is_listed=parent in listed) for parent in partition.parents)
        (waiting if waits else ready).append(partition)  # guard: a shard begins once its parents ended
    return Lineage(ready, waiting)


def _is_open(head: Head | None, *, is_listed: bool) -> bool:
    """Whether a parent may have records that are not landed. One without a chain that is gone has none."""
    return is_listed if head is None else not head.closed
