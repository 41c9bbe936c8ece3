"""Tells from heartbeats which run works for each shard. Decisions, no I/O."""

from collections.abc import Iterable

from compactor.core.documents.records import RunHeartbeat
from compactor.core.rules.sharding import shard_number


def runs_of_shards(living: Iterable[RunHeartbeat]) -> dict[int, str]:
    """The id of the run that takes the manifests of each shard, by the number of the shard.

    A run that was asked to end takes nothing new. Of several runs of one shard the latest takes all, however many
    shards each of them knows of: while their number is changed, both may be there for a while.
    """
    latest: dict[int, RunHeartbeat] = {}
    for beat in sorted(living, key=lambda beat: (beat.started_at, beat.run_id)):
        number = shard_number(beat.shard)
        if number is not None and not beat.is_stopping:
            latest[number] = beat
    return {number: beat.run_id for number, beat in latest.items()}


def works_alone(living: Iterable[RunHeartbeat]) -> bool:
    """Whether a run without a shard is there, which takes all manifests."""
    return any(shard_number(beat.shard) is None and not beat.is_stopping for beat in living)
