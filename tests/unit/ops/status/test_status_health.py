"""The state of the job, decided from what was seen: a table of cases."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from compactor.ledger.backlog import Backlog
from compactor.ops.status.health import Rules, health
from compactor.ops.status.values import DeadLetters, Drain, Facts, FilesQuarantined
from tests.support.statuses import LETTERS, NO_LETTERS, NOW, ON_A_LAPTOP, QUARANTINED, RULES, RUN, ago, commit

NOTHING = Facts(
    as_of=NOW,
    runs=(RUN,),
    last_heartbeat_at=None,
    backlog=Backlog(),
    drain=Drain(0.0, is_never=False, reason="nothing waits"),
    dead_letters=NO_LETTERS,
    quarantined_files=FilesQuarantined(64, 0, {}),
    recent=(commit(1, 30),),
)
LETTER = DeadLetters(1, 1, 1, {"not_json": 1}, LETTERS[1:2])
SOON, NEVER = Drain(60.0, is_never=False, reason="soon"), Drain(None, is_never=True, reason="more arrives")
DOWN: dict[str, Any] = {"runs": ()}


def waits(seconds: float, **changes: Any) -> Backlog:
    return Backlog(manifests=4, manifests_read=4, input_bytes=4_000, oldest_seconds=seconds, **changes)


@dataclass(frozen=True)
class Case:
    """What was seen, and what has to come of it; texts have to be in reason and next move."""

    name: str
    seen: dict[str, Any]
    word: str
    reason: str
    move: str
    rules: Rules = RULES


CASES = (
    Case("nothing ever", {**DOWN, "recent": ()}, "empty", "nothing was committed here yet", "compactor plan"),
    Case("nothing ever, but a job", {"recent": ()}, "idle", "nothing was committed yet", ""),
    Case("nothing waits", {}, "idle", "the last commit was 30 s ago", ""),
    Case("nothing waits, no job", DOWN, "stopped", "no job runs, and nothing waits", "compactor plan"),
    Case("one waits", {"backlog": replace(waits(12), manifests=1), "drain": SOON}, "running", "1 manifest", ""),
    Case("some wait", {"backlog": waits(12), "drain": SOON}, "running", "4 manifests wait or are in progress", ""),
    Case("begun, archived by hand", {"backlog": Backlog(begun_manifests=2)}, "running", "2 manifests are started", ""),
    Case("no job at Glue", {**DOWN, "backlog": waits(12)}, "stopped", "no job runs", "compactor job check --dry-run"),
    Case("no job here", {**DOWN, "backlog": waits(12)}, "stopped", "no job runs", "compactor run", ON_A_LAPTOP),
    Case(
        "it died",
        {**DOWN, "backlog": waits(12), "last_heartbeat_at": ago(300)},
        "stopped",
        "the job died",
        "",
        ON_A_LAPTOP,
    ),
    Case(
        "one is left half done", {**DOWN, "backlog": Backlog(begun_manifests=1)}, "stopped", "1 manifest is started", ""
    ),
    Case(
        "asked to stop", {"runs": (replace(RUN, asked_to_stop_at=ago(25)),)}, "stopping", "asked to stop 25 s ago", ""
    ),
    Case("one of two asked", {"runs": (RUN, replace(RUN, asked_to_stop_at=ago(25)))}, "idle", "nothing waits", ""),
    Case(
        "a shard has no job",
        {"runs": (replace(RUN, shard="1/3"), replace(RUN, shard="3/3")), "shards": 3},
        "needs_you",
        "shard 2/3 has no job that runs, and the others take its manifests",
        "compactor job check --dry-run --shard 2/3",
    ),
    Case(
        "two shards have no job here",
        {"runs": (replace(RUN, shard="1/3"),), "shards": 3},
        "needs_you",
        "shards 2/3, 3/3 have no job that runs",
        "compactor run --shard 2/3",
        ON_A_LAPTOP,
    ),
    Case("every shard has a job", {"runs": (replace(RUN, shard="1/1"),)}, "idle", "nothing waits", ""),
    Case(
        "a job without a shard beside others",
        {"runs": (RUN, replace(RUN, shard="1/2")), "shards": 2},
        "needs_you",
        "has no shard and takes all manifests; 1 run of shards waits until it ends",
        "compactor stop",
    ),
    Case("just in time", {"backlog": waits(899), "drain": SOON}, "running", "14 min 59 s", ""),
    Case("late", {"backlog": waits(900), "drain": SOON}, "behind", "the SLA is 15 min", "wait 1 min until"),
    Case("late for ever", {"backlog": waits(900), "drain": NEVER}, "behind", "and more arrives", "add workers"),
    Case("falling behind", {"backlog": waits(450), "drain": NEVER}, "behind", "and more arrives", "add workers"),
    Case("a little short", {"backlog": waits(449), "drain": NEVER}, "running", "4 manifests", ""),
    Case(
        "stuck",
        {"backlog": waits(9_000, oldest_begun="m7"), "recent": (commit(1, 3_600),)},
        "stuck",
        "committed nothing for 1 h",
        "compactor trace m7",
    ),
    Case("stuck at once", {"backlog": waits(9_000), "recent": ()}, "stuck", "for 5 h 4 min", "compactor stop"),
    Case("slow, not stuck", {"backlog": waits(9_000), "recent": (commit(1, 3_599),)}, "behind", "2 h 30 min", ""),
    Case(
        "just started",
        {"backlog": waits(9_000), "recent": (commit(1, 9_000),), "runs": (replace(RUN, started_at=ago(60)),)},
        "behind",
        "2 h 30 min",
        "",
    ),
    Case("a dead letter", {"dead_letters": LETTER}, "needs_you", "1 manifest is a dead letter", "compactor dismiss"),
    Case(
        "dead letters, and no job",
        {**DOWN, "dead_letters": replace(LETTER, open=3)},
        "needs_you",
        "3 manifests are dead letters",
        "compactor redrive manifests",
    ),
    Case("redriven", {"dead_letters": DeadLetters(9, 9, 0, {})}, "idle", "nothing waits", ""),
    Case("files", {"quarantined_files": QUARANTINED}, "needs_you", "3 input files are quarantined", "redrive files"),
    Case(
        "one manifest hangs",
        {"backlog": Backlog(begun_manifests=1, oldest_begun="m7", oldest_begun_seconds=3_600)},
        "needs_you",
        "started 1 h ago and is not done",
        "compactor trace m7",
    ),
    Case(
        "not sealed",
        {"backlog": Backlog(pending_parts=1, oldest_pending_seconds=600)},
        "needs_you",
        "announced files have waited for 10 min",
        "sealer's log",
    ),
    Case("sealed soon", {"backlog": Backlog(pending_parts=1, oldest_pending_seconds=599)}, "idle", "nothing waits", ""),
    Case(
        "late comes before dead letters",
        {"backlog": waits(900), "drain": SOON, "dead_letters": LETTER},
        "behind",
        "the SLA",
        "",
    ),
    Case("down comes before them", {**DOWN, "backlog": waits(9), "dead_letters": LETTER}, "stopped", "no job runs", ""),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_health(case: Case) -> None:
    """Each case has its word, its reason and its next move; where there is nothing to do, none is named."""
    state = health(replace(NOTHING, **case.seen), case.rules)
    assert (state.word, case.reason in state.reason, case.move in state.next_move) == (case.word, True, True), state
    if case.word in {"idle", "running", "stopping"}:
        assert state.next_move == ""
