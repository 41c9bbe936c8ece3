"""Tells of jobs that share the manifests of one prefix: which are missing, and which wait for others. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compactor.control.diagnosis.health import Condition, Finding, finding
from compactor.control.snapshot import LivingRun
from compactor.core.rules.sharding import Shard, shard_number
from compactor.core.text.formatting import count
from compactor.core.text.suggestions import Suggestions


def shards_among(runs: Sequence[LivingRun], expected: int) -> int:
    """How many jobs share the manifests.

    Args:
        runs: Those that are alive.
        expected: How many the settings ask for. If that is 1, the run that began last tells.
    """
    latest = max((run for run in runs if shard_number(run.shard)), key=lambda run: run.started_at, default=None)
    return Shard.parse(latest.shard).of if latest and expected == 1 else expected


def missing_shards(runs: Sequence[LivingRun], shards: int) -> tuple[int, ...]:
    """The numbers of the shards without a run, while other shards have one."""
    living = {shard_number(run.shard) for run in runs} - {None}
    return tuple(number for number in range(1, shards + 1) if number not in living) if living else ()


def of_shards(runs: Sequence[LivingRun], shards: int, suggest: Suggestions, *, is_on_glue: bool) -> Iterator[Finding]:
    """What people should know of the shards."""
    whole = [run for run in runs if not run.shard]
    suggest = replace(suggest, stream="")  # the streams of a job share it
    if whole and len(whole) < len(runs):
        waiting = len(runs) - len(whole)
        others = f"{count(waiting, 'run')} of shards {'waits' if waiting == 1 else 'wait'} until it ends"
        reason = f"run {whole[0].run_id} has no shard and takes all manifests; {others}"
        yield finding(Condition.SHARDS_WAIT, reason, f"end it with {suggest.call('stop')}, and start it with --shard")
    elif missing := missing_shards(runs, shards):
        take = "its" if len(missing) == 1 else "their"
        names = ", ".join(f"{number}/{shards}" for number in missing)
        has = "shard {} has" if len(missing) == 1 else "shards {} have"
        start = suggest.call(f"control --dry-run --shard {missing[0]}/{shards}") + " says why it is not started"
        here = suggest.call(f"run --shard {missing[0]}/{shards}")
        reason = f"{has.format(names)} no job that runs, and the others take {take} manifests"
        yield finding(Condition.SHARD_DOWN, reason, start if is_on_glue else here)
