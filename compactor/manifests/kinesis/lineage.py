"""Decides which shards may be read: a shard comes after those that it was split or merged from. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compactor.core.kinesis.ports import Shard
from compactor.ledger.kinesis.shard_chains import Head


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of the shards of a stream.

    Attributes:
        ready: Those that may be read now: not closed, and all parents are.
        waiting: Those that have a parent which is not.
    """

    ready: Sequence[Shard]
    waiting: Sequence[Shard]


def lineage(shards: Sequence[Shard], heads: Mapping[str, Head | None]) -> Lineage:
    """Divide the shards that are not closed.

    Args:
        shards: Those that the stream lists.
        heads: Of each of them, and of each parent that has a chain, where its chain ends; None without a chain.
    """
    listed = {shard.shard_id for shard in shards}
    ready, waiting = list[Shard](), list[Shard]()
    for shard in shards:
        head = heads.get(shard.shard_id)
        if head is not None and head.closed:
            continue
        waits = any(_is_open(heads.get(parent), is_listed=parent in listed) for parent in shard.parents)
        (waiting if waits else ready).append(shard)  # guard: a shard begins once its parents ended
    return Lineage(ready, waiting)


def _is_open(head: Head | None, *, is_listed: bool) -> bool:
    """Whether a parent may have records that are not landed. One without a chain that is gone has none."""
    return is_listed if head is None else not head.closed
