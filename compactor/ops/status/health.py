"""Determines the job's state: the most urgent of all conditions that hold. Decisions, no I/O."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from compactor.control.diagnosis.alarms import (
    dead_letters,
    few_rows,
    housekeeping_fails,
    logs_behind,
    manifests_held_back,
    quarantined_files,
    table_behind,
)
from compactor.control.diagnosis.health import (
    Condition,
    Finding,
    columns_nearly_full,
    finding,
    is_late,
    lacks_progress,
    most_urgent,
    waiting_work,
)
from compactor.control.snapshot import LivingRun
from compactor.core.rules.sharding import Shard, shard_number
from compactor.core.text.formatting import count, shown_seconds
from compactor.core.text.safe_text import Suggestions, quoted
from compactor.ops.status.values import Facts, rejects


def shards_among(runs: Sequence[LivingRun], expected: int) -> int:
    """How many jobs share the manifests: the number in the settings; if that is 1, the one of the latest run."""
    latest = max((run for run in runs if shard_number(run.shard)), key=lambda run: run.started_at, default=None)
    return Shard.parse(latest.shard).of if latest and expected == 1 else expected


def missing_shards(runs: Sequence[LivingRun], shards: int) -> tuple[int, ...]:
    """The numbers of the shards without a run, while other shards have one."""
    living = {shard_number(run.shard) for run in runs} - {None}
    return tuple(number for number in range(1, shards + 1) if number not in living) if living else ()


def of_shards(runs: Sequence[LivingRun], shards: int, suggest: Suggestions, *, is_on_glue: bool) -> Iterator[Finding]:
    """Faults of the shards."""
    whole = [run for run in runs if not run.shard]
    suggest = replace(suggest, stream="")  # the job's streams share it
    if whole and len(whole) < len(runs):
        waiting = len(runs) - len(whole)
        others = f"{count(waiting, 'run')} of shards {'waits' if waiting == 1 else 'wait'} until it ends"
        reason = f"run {whole[0].run_id} has no shard and takes all manifests; {others}"
        yield finding(Condition.SHARDS_WAIT, reason, f"end it with {suggest.call('stop')}, and start it with --shard")
    elif missing := missing_shards(runs, shards):
        take = "its" if len(missing) == 1 else "their"
        names = ", ".join(f"{number}/{shards}" for number in missing)
        has = "shard {} has" if len(missing) == 1 else "shards {} have"
        start = suggest.call(f"job check --dry-run --shard {missing[0]}/{shards}") + " says why it is not started"
        here = suggest.call(f"run --shard {missing[0]}/{shards}")
        reason = f"{has.format(names)} no job that runs, and the others take {take} manifests"
        yield finding(Condition.SHARD_DOWN, reason, start if is_on_glue else here)


def releases_differ(releases: Mapping[str, Collection[str]], canary: str = "") -> tuple[str, str] | None:
    """How the releases of living runs differ, by stream, and the next action; None if they are the same.

    `canary` is the stream whose job takes a release first; empty if there is none. Empty releases are unknown.
    """
    streams = dict[tuple[str, ...], list[str]]()
    for name, found in releases.items():
        if differing := tuple(sorted({*filter(None, found)})):
            streams.setdefault(differing, []).append(name)
    if len({release for differing in streams for release in differing}) < 2:  # noqa: PLR2004 - two differ
        return None
    alone = next((differing for differing, names in streams.items() if names == [canary]), None)
    if alone is None or len(streams) > 2 or any(len(differing) > 1 for differing in streams):  # noqa: PLR2004 - it and the others
        words = "; ".join(
            f"release {' and '.join(differing)}: {', '.join(names)}" for differing, names in streams.items()
        )
        return words, "make deploy ENV=... RESTART=1, which leaves one release, if no upgrade is under way"
    [others] = [differing for differing in streams if differing != alone]
    words = f"{canary} is the canary, with release {alone[0]}; all others have {others[0]}"
    check = f"compactor job smoke-test --stream {quoted(canary)}"
    return words, f"{check}; then make deploy ENV=... for all, or with CANARY=back"


STALE_PENDING = 5  # a part that has waited this many times `builder.max_wait_seconds` was missed by the sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits that decide the state."""

    sla_seconds: float | None  # how long a manifest may wait; None without an SLA
    stall_seconds: float  # how long a run may commit nothing while work waits, and a manifest may be in progress
    max_wait_seconds: float  # how long an announced file may wait to be sealed
    shards: int = 1  # how many jobs the settings ask for
    is_on_glue: bool  # whether the control plane, not a person, starts the job
    suggest: Suggestions = field(default_factory=Suggestions)  # how commands are suggested


def health(facts: Facts, rules: Rules) -> Finding:
    """The state of the job.

    Conditions that stop data come before conditions that delay it, and those before quarantined files.
    """
    waiting = (table_behind(facts.table), logs_behind(facts.logs))
    found = (_of_runs(facts, rules), *waiting, _of_lateness(facts, rules), _of_faults(facts, rules))
    return most_urgent([*chain.from_iterable(found), _at_rest(facts, rules)])


def _of_runs(facts: Facts, rules: Rules) -> Iterator[Finding]:
    backlog, runs = facts.backlog, facts.runs
    if not runs:
        if not backlog.is_empty:
            yield _down(facts, rules)
        return
    up_since, last = min(run.started_at for run in runs), facts.last_commit_at
    if lacks_progress(
        backlog, up_since=up_since, last_commit_at=last, stall_seconds=rules.stall_seconds, now=facts.as_of
    ):
        since = facts.ago(max(up_since, last or up_since))
        reason = f"a job runs but has committed nothing for {since}, and {waiting_work(backlog)}"
        trace = rules.suggest.call("trace", backlog.oldest_begun)
        move = f"{trace}, and read the job's log" if backlog.oldest_begun else ""
        yield finding(Condition.NO_PROGRESS, reason, move)
    yield from of_shards(runs, facts.shards, rules.suggest, is_on_glue=rules.is_on_glue)
    asked = [run.asked_to_stop_at for run in runs if run.asked_to_stop_at is not None]
    if len(asked) == len(runs):
        reason = f"asked to stop {facts.ago(min(asked))} ago; it stops after the manifests in flight"
        yield finding(Condition.STOPPING, reason)


def _down(facts: Facts, rules: Rules) -> Finding:
    on_glue = "compactor job check --dry-run (shows why no job runs)"
    died = facts.last_heartbeat_at
    here = (rules.suggest.again or "compactor run") + (" (continues where it stopped)" if died is not None else "")
    why = "no job runs" if died is None else f"the job died: its last heartbeat is {facts.ago(died)} old"
    reason = f"{why}, and {waiting_work(facts.backlog)}"
    return finding(Condition.NO_HEARTBEAT, reason, on_glue if rules.is_on_glue and not rules.suggest.folder else here)


def _of_lateness(facts: Facts, rules: Rules) -> Iterator[Finding]:
    backlog, drain = facts.backlog, facts.drain
    if rules.sla_seconds is None:
        return
    reason = f"{waiting_work(backlog)}; the SLA is {shown_seconds(rules.sla_seconds)}"
    if facts.runs and drain.seconds is not None and is_late(backlog, rules.sla_seconds):
        move = f"wait {shown_seconds(drain.seconds)} until the backlog is empty, or add workers"
        yield finding(Condition.OLDEST_MANIFEST, reason, move)
    elif facts.runs and is_late(backlog, rules.sla_seconds):
        yield finding(Condition.OLDEST_MANIFEST, f"{reason}, and {drain.reason}")
    elif facts.runs and drain.is_never and is_late(backlog, rules.sla_seconds / 2):
        yield finding(Condition.FALLING_BEHIND, f"{reason}, and {drain.reason}")


def _of_faults(facts: Facts, rules: Rules) -> Iterator[Finding]:
    backlog, letters, files = facts.backlog, facts.dead_letters, facts.quarantined_files
    yield from manifests_held_back(facts.table)
    if backlog.oldest_begun and backlog.oldest_begun_seconds >= rules.stall_seconds:
        reason = f"a manifest was started {shown_seconds(backlog.oldest_begun_seconds)} ago and is not done"
        yield finding(Condition.MANIFESTS_STUCK, reason, rules.suggest.call("trace", backlog.oldest_begun))
    if backlog.oldest_undecided and backlog.oldest_undecided_seconds >= rules.stall_seconds:
        ago = shown_seconds(backlog.oldest_undecided_seconds)
        reason = f"a rebuild was started {ago} ago and is undecided; until it is done its date is not closed"
        yield finding(
            Condition.MANIFESTS_STUCK, reason, rules.suggest.call("rebuild", "--manifest", backlog.oldest_undecided)
        )
    if backlog.pending_parts and backlog.oldest_pending_seconds >= STALE_PENDING * rules.max_wait_seconds:
        waited = shown_seconds(backlog.oldest_pending_seconds)
        yield finding(Condition.SEALER_LATE, f"announced files have waited for {waited}, and are not sealed")
    if letters.open:
        latest = [(each.reason, each.manifest_id) for each in letters.latest]
        yield from dead_letters(letters.open, latest, rules.suggest)
    yield from quarantined_files(files.by_status, files.by_cause, [each.uri for each in files.latest], rules.suggest)
    if facts.schema.error:
        reason = f"the latest schema version is unreadable: {facts.schema.error}"
        yield finding(Condition.RECORDS_UNREADABLE, reason, rules.suggest.at(Condition.RECORDS_UNREADABLE.next_move))
    yield from few_rows(sum(each.records for each in facts.recent), rejects(facts.recent).lines, rules.suggest)
    for each in columns_nearly_full(facts.columns):
        yield replace(each, next_move=rules.suggest.at(each.next_move))
    yield from housekeeping_fails(facts.housekeeping)


def _at_rest(facts: Facts, rules: Rules) -> Finding:
    """The state if nothing else holds."""
    last = f"the last commit was {facts.ago(facts.last_commit_at)} ago" if facts.last_commit_at else ""
    if facts.runs and not facts.backlog.is_empty:
        return finding(Condition.RUNNING, waiting_work(facts.backlog))
    if facts.runs:
        return finding(Condition.IDLE, f"nothing waits; {last or 'nothing was committed yet'}")
    if rules.suggest.again:
        new = f"{rules.suggest.again}, if there is new input"
        reason = f"nothing waits; {last}" if last else "nothing was committed here yet, and nothing waits"
        return finding(Condition.FOLDER_DONE if last else Condition.EMPTY, reason, new)
    if last:
        move = rules.suggest.at(Condition.ALL_DONE.next_move)
        return finding(Condition.ALL_DONE, f"no job runs, and nothing waits; {last}", move)
    move = rules.suggest.at(Condition.EMPTY.next_move)
    return finding(Condition.EMPTY, "nothing was committed here yet, and nothing waits", move)
