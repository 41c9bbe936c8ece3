"""The table of cases: what the control plane decides, for each state of Glue, queue state and history."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.control.decisions import ActionKind, decide
from compactor.control.snapshot import (
    Heartbeats,
    JobRun,
    JobSeen,
    JobState,
    LivingRun,
    QueueDepth,
    Snapshot,
    Source,
    newest_first,
)
from compactor.core.documents.records import RecentCommit
from compactor.ledger.backlog import Backlog
from compactor.ledger.landing.progress import LogSeen
from compactor.settings.control_policy import Policy
from compactor.settings.types import MaintenanceWindow
from tests.support.recent_commits import recent_commit

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)  # a Wednesday
TABLE: dict[str, Any] = tomllib.loads((Path(__file__).parents[2] / "cases" / "control.toml").read_text())
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
ABOUT_THE_JOB = {ActionKind.START, ActionKind.ASK_TO_STOP, ActionKind.STOP, ActionKind.WAIT}


class Row:
    """A row of the table, which has to be read whole."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._rest = dict(row)

    def take(self, key: str, default: Any = None) -> Any:
        return self._rest.pop(key, default)

    def done(self) -> None:
        assert self._rest == {}, f"keys that nothing reads: {sorted(self._rest)}"


def seconds(age: str) -> float:
    found = re.fullmatch(r"(\d+)([smhd])", age)
    assert found, f"{age}: expected an age such as 90s, 5m, 2h or 3d"
    return float(found[1]) * UNITS[found[2]]


def ago(age: str) -> datetime:
    return NOW - timedelta(seconds=seconds(age))


def run_of(document: Mapping[str, Any]) -> JobRun:
    row = Row(document)
    run_id, state = row.take("id"), JobState(row.take("state"))
    began, ended = ago(row.take("began")), row.take("ended")
    row.take("seen")
    changed, timeout = row.take("changed"), row.take("timeout")
    error = row.take("error", "")
    row.done()
    assert state.is_living == (ended is None), f"run {run_id}: a run that ended, and no other, has an end"
    changed_at = ago(ended or changed) if ended or changed else began
    timeout_seconds = seconds(timeout) if timeout else None
    ended_at = ago(ended) if ended else None
    return JobRun(run_id, state, began, changed_at, ended_at, error, timeout_seconds=timeout_seconds)


def heartbeats_of(document: Mapping[str, Any]) -> Heartbeats:
    row = Row(document)
    living = []
    for each in row.take("living", []):
        one = Row(each)
        beat, asked = ago(one.take("beat")), one.take("asked")
        living.append(LivingRun(one.take("id"), "glue", ago("3h"), beat, ago(asked) if asked else None))
        one.done()
    last = row.take("last")
    row.done()
    return Heartbeats(tuple(living), ago(last) if last else max((each.heartbeat_at for each in living), default=None))


def commits_of(document: Mapping[str, Any]) -> tuple[RecentCommit, ...]:
    row = Row(document)
    number, every, last = row.take("count"), seconds(row.take("every")), ago(row.take("last"))
    takes, megabytes = row.take("seconds"), row.take("megabytes")
    row.done()
    return tuple(
        recent_commit(
            last - timedelta(seconds=every * at),
            manifest_id=f"m{at}",
            input_bytes=megabytes * 1_000_000,
            seconds=takes,
        )
        for at in reversed(range(number))
    )


UNREAD = {
    Source.RUNS: "runs",
    Source.HEARTBEATS: "heartbeats",
    Source.QUEUE: "queue",
    Source.QUEUE_AGE: "queue_oldest_seconds",
    Source.DEAD_LETTERS: "dead_letters",
    Source.MANIFESTS: "backlog",
    Source.BEGUN: "begun",
    Source.LEDGER: "recent",
    Source.LOGS: "logs",
    Source.BREAKER: "breaker_closed_at",
    Source.DEFINITION: "job_defined_at",
}


def log_of(document: Mapping[str, Any]) -> LogSeen:
    """A topic or stream with a record that is not landed, with landings that fail, or that no job has landed."""
    ages = {f"{key}_seconds": seconds(document.get(key, "0s")) for key in ("behind", "failing", "unseen")}
    return LogSeen(name=document["name"], late_seconds=900.0, **ages)


def seen_of(documents: Sequence[Mapping[str, Any]], **refused: Any) -> JobSeen:
    """What checks saw of the newest run: `seen`, or of a run that is alive that it has always been in its state."""
    for document in documents[:1]:
        default = {} if document.get("ended") else {document["state"]: document.get("changed", document["began"])}
        if since := document.get("seen", default):
            found = {JobState(state): ago(age) for state, age in since.items()}
            return JobSeen(run_id=document["id"], since_by_state=found, **refused)
    return JobSeen(**refused)


def snapshot_of(row: Row) -> Snapshot:
    queue, age, backlog = row.take("queue"), row.take("queue_age"), row.take("backlog")
    closed, defined, refused = (row.take(key) for key in ("breaker_closed", "job_defined", "refused"))
    runs = row.take("runs", [])
    refusals = {"refused_starts": refused["count"], "refused_since": ago(refused["since"])} if refused else {}
    snapshot = Snapshot(
        runs=newest_first([run_of(each) for each in runs]),
        heartbeats=heartbeats_of(row.take("heartbeats", {})),
        queue=QueueDepth(**queue) if queue else None,
        queue_oldest_seconds=seconds(age) if age else None,
        dead_letters=row.take("dead_letters"),
        backlog=Backlog(backlog["manifests"], seconds(backlog["oldest"])) if backlog else Backlog(0),
        begun={f"m{at}": ago(age) for at, age in enumerate(row.take("begun", []))},
        logs=tuple(log_of(each) for each in row.take("logs", [])),
        recent=commits_of(commits) if (commits := row.take("commits")) else (),
        breaker_closed_at=ago(closed) if closed else None,
        job_defined_at=ago(defined) if defined else None,
        seen=seen_of(runs, **refusals),
    )
    return without(snapshot, *(Source[name.upper()] for name in row.take("unknown", [])))


def without(snapshot: Snapshot, *sources: Source) -> Snapshot:
    """The same, as far as these sources could not be read."""
    unread: dict[str, Any] = {UNREAD[source]: None for source in sources if source is not Source.SEEN}
    seen = JobSeen() if Source.SEEN in sources else snapshot.seen
    return replace(snapshot, **unread, seen=seen, unknown=dict.fromkeys(sources, "away"))


def policy_from(document: Mapping[str, Any]) -> Policy:
    """A policy by way of the settings, which refuse unknown keys."""
    return Policy.model_validate(document)


@pytest.mark.parametrize("case", TABLE["case"], ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    """What is done about the job, and which alarms go with it."""
    row = Row(case)
    row.take("name")
    actions = decide(snapshot_of(row), policy_from(row.take("policy", {})), NOW)
    job, *others = actions
    assert job.kind == row.take("job"), job.reason
    assert row.take("says", "") in job.reason
    assert list(job.targets) == row.take("targets", list(job.targets))
    assert [action.about for action in others if action.kind is ActionKind.ALARM] == row.take("alarms", [])
    row.done()


BACKLOGS = {
    "empty": Backlog(0),
    "waiting": Backlog(3, 120.0),
    "late": Backlog(3, 7200.0),
    "unknown": None,
}
HEARTBEATS = {
    "alive": ("3h", Heartbeats((LivingRun("a", "glue", ago("3h"), ago("5s")),), ago("5s"))),
    "silent": ("3h", Heartbeats((), ago("2h"))),
    "unknown": ("3h", None),
    "young": ("5m", Heartbeats()),
    "asked": ("3h", Heartbeats((LivingRun("a", "glue", ago("3h"), ago("5s"), ago("5m")),), ago("5s"))),
    "overdue": ("3h", Heartbeats((LivingRun("a", "glue", ago("3h"), ago("5s"), ago("20m")),), ago("5s"))),
}
HISTORIES = {
    "proven": [("3d", "2m")],
    "crashed": [("330s", "30s")],
    "paused": [("390s", "90s")],
    "again": [("390s", "90s"), ("12m", "7m"), ("20m", "15m")],
    "loop": [(f"{15 + 6 * at}m", f"{10 + 6 * at}m") for at in range(5)],
    "cooled": [(f"{66 + 6 * at}m", f"{61 + 6 * at}m") for at in range(5)],
}


@dataclass(frozen=True)
class Cell:
    """One state of Glue, with one history and one backlog."""

    name: str
    policy: Policy
    snapshot: Snapshot
    expected: str


def cells() -> Iterator[Cell]:
    for kind in ("living", "ended"):
        for document in TABLE[kind]:
            row = Row(document)
            policy, state = policy_from({"mode": row.take("mode")}), row.take("state")
            past = row.take("heartbeats" if kind == "living" else "history")
            expected = row.take("expected")
            row.done()
            if kind == "living":
                began, heartbeats = HEARTBEATS[past]
                runs = [run_of({"id": "jr_1", "state": state, "began": began})]
            else:
                heartbeats = Heartbeats()
                runs = [
                    run_of({"id": f"jr_{9 - at}", "state": state, "began": began, "ended": ended})
                    for at, (began, ended) in enumerate(HISTORIES[past])
                ]
            seen = seen_of([{"id": "jr_1", "state": state, "began": began}] if kind == "living" else [])
            snapshot = Snapshot(runs=newest_first(runs), heartbeats=heartbeats, seen=seen)
            for backlog, action in zip(TABLE["backlogs"], expected, strict=True):
                name = f"{policy.mode}-{state}-{past}-{backlog}"
                yield Cell(name, policy, replace(snapshot, backlog=BACKLOGS[backlog]), action)


@pytest.mark.parametrize("cell", list(cells()), ids=lambda cell: cell.name)
def test_state_by_history_by_backlog(cell: Cell) -> None:
    """Each state of Glue, with each history and each backlog, leads to one thing that is done about the job."""
    job = decide(cell.snapshot, cell.policy, NOW)[0]
    assert job.kind == cell.expected, job.reason
    assert job.reason


def test_every_state_is_in_the_table() -> None:
    """The table leaves no state of Glue and no kind of past out."""
    assert {row["state"] for row in TABLE["living"] + TABLE["ended"]} == set(JobState)
    assert {row["heartbeats"] for row in TABLE["living"]} == set(HEARTBEATS)
    assert {row["history"] for row in TABLE["ended"]} == set(HISTORIES)
    assert set(TABLE["backlogs"]) == set(BACKLOGS)
    assert set(TABLE) == {"backlogs", "living", "ended", "case"}


def test_keys_that_nothing_reads_are_refused() -> None:
    """A mistyped key in the table fails, whatever it is part of."""
    for document, read in (
        ({"runz": []}, lambda row: (snapshot_of(row), row.done())),
        ({"runs": [{"id": "a", "state": "RUNNING", "began": "1h", "endet": "1m"}]}, snapshot_of),
        ({"heartbeats": {"latest": "1m"}}, snapshot_of),
    ):
        with pytest.raises(AssertionError, match="keys that nothing reads"):
            read(Row(document))
    with pytest.raises(ValueError, match="modus"):
        policy_from({"modus": "never"})


@pytest.mark.parametrize(
    ("moment", "is_inside"),
    [("01T09:59", False), ("01T10:00", True), ("01T12:59", True), ("01T13:00", False), ("02T10:00", False)],
)
def test_maintenance_window(moment: str, is_inside: bool) -> None:
    """The window lasts for the three hours in which Glue restarts a job; 1 March 2026 is a Sunday."""
    window = MaintenanceWindow.parse("Sun:10")
    assert window.covers(datetime.fromisoformat(f"2026-03-{moment}:00+00:00")) is is_inside


def test_maintenance_window_at_the_end_of_the_week() -> None:
    """A window that begins late on Sunday goes on into Monday."""
    window = MaintenanceWindow.parse("Sun:23")
    assert window.covers(datetime(2026, 3, 2, 1, 59, tzinfo=UTC))
    assert not window.covers(datetime(2026, 3, 2, 2, tzinfo=UTC))


@pytest.mark.parametrize("text", ["", "Sunday:10", "Sun", "Sun:24", "sun:10", "Sun:10:00", "10"])
def test_no_maintenance_window(text: str) -> None:
    """What Glue would not take as a window is refused."""
    with pytest.raises(ValueError, match="such as Sun:10"):
        MaintenanceWindow.parse(text)


AGES = st.integers(0, 20 * 86_400)


@st.composite
def any_run(draw: st.DrawFn) -> JobRun:
    state = draw(st.sampled_from(list(JobState)))
    began, changed = sorted((draw(AGES), draw(AGES)), reverse=True)
    started_at, changed_at = (NOW - timedelta(seconds=age) for age in (began, changed))
    run_id = draw(st.sampled_from(["jr_1", "jr_1_restart_1", "jr_1_restart_2", "jr_2", "jr_3", "jr_4"]))
    return JobRun(run_id, state, started_at, changed_at, None if state.is_living else changed_at)


@st.composite
def any_snapshot(draw: st.DrawFn) -> Snapshot:
    ages = st.lists(st.tuples(AGES, st.one_of(st.none(), AGES)), max_size=2)
    living = tuple(
        LivingRun(
            f"r{at}", "glue", ago("3d"), NOW - timedelta(seconds=age), None if asked is None else ago(f"{asked}s")
        )
        for at, (age, asked) in enumerate(draw(ages))
    )
    return without(
        Snapshot(
            runs=newest_first(draw(st.lists(any_run(), max_size=8))),
            heartbeats=Heartbeats(living, draw(st.one_of(st.none(), st.just(ago("5m"))))),
            backlog=Backlog(draw(st.integers(0, 5)), float(draw(AGES))),
            queue=QueueDepth(draw(st.integers(0, 5))),
            begun={f"m{at}": NOW - timedelta(seconds=age) for at, age in enumerate(draw(st.lists(AGES, max_size=2)))},
        ),
        *draw(st.sets(st.sampled_from(list(Source)))),
    )


@given(any_snapshot(), st.sampled_from(["always", "on_work", "never"]))
def test_never_a_second_run(snapshot: Snapshot, mode: Any) -> None:
    """Whatever is seen: one thing is done about the job, with a reason, and no start beside a run that may live."""
    actions = decide(snapshot, Policy(mode=mode), NOW)
    assert [action.kind in ABOUT_THE_JOB for action in actions] == [True] + [False] * (len(actions) - 1)
    assert all(action.reason for action in actions)
    alarms = [action.about for action in actions if action.kind is ActionKind.ALARM]
    assert len(set(alarms)) == len(alarms)
    if actions[0].kind is ActionKind.START:
        assert snapshot.runs is not None
        assert not snapshot.living_runs
        assert not (snapshot.heartbeats and snapshot.heartbeats.living)
        assert mode != "never"
    if actions[0].kind is ActionKind.STOP:
        assert [run.run_id for run in snapshot.living_runs] == list(actions[0].targets)
