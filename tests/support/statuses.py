"""One status per scene: every state of the job, for tests of the screen and of JSON."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from compactor.control.diagnosis.health import Condition, finding
from compactor.control.snapshot import LivingRun
from compactor.core.distributions import Spread
from compactor.core.documents.changes import DeadLetter
from compactor.core.documents.records import FileStatus, RecentCommit
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.backlog import Backlog
from compactor.ops.status.health import Rules, health
from compactor.ops.status.values import (
    DeadLetters,
    FilesQuarantined,
    Misfits,
    OutputSizes,
    Rates,
    Rejects,
    SchemaSeen,
    Status,
    drain,
    output_sizes,
)
from tests.support.recent_commits import recent_commit

MIB = 1024 * 1024
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RULES = Rules(sla_seconds=900, stall_seconds=3600, max_wait_seconds=120, is_on_glue=True)
ON_A_LAPTOP = replace(RULES, is_on_glue=False)
NO_LETTERS = DeadLetters(0, 0, 0, {})
LETTERS = tuple(
    DeadLetter(
        manifest_id=manifest_id,
        date="2026-01-02",
        reason=reason,
        message="what it was, where, and what was expected",
        source_uri=f"s3://lake/manifests/{manifest_id}.json",
        run_id="run",
        decided_at=NOW - timedelta(seconds=seconds),
    )
    for manifest_id, reason, seconds in (
        ("2026-01-02-5f0b1c2d", "retries_exhausted", 95),
        ("2026-01-02-77aa01b2", "not_json", 4_000),
        ("upstream-system-writes-manifests-with-very-long-names-2026-01-02T03-00-00-000001", "bad_uri", 9_000),
        ("2026-01-01-0c0ffee0", "bad_uri", 90_000),
    )
)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def commit(number: int, seconds_ago: float) -> RecentCommit:
    """A commit of a full manifest."""
    return recent_commit(
        ago(seconds_ago),
        manifest_id=f"2026-01-02-{number * 0x9E3779B97F4A7C15 % 2**64:016x}",
        decoded_bytes=1_073_741_824,
        input_bytes=1_073_741_824,
        output_bytes=257_698_038,
        output_files=2,
        input_files=286,
        records=1_234_567,
        rejected_lines=number % 3,
        seconds=12.4,
        arrived_at=ago(seconds_ago + 40),
        rejects={"invalid_json": number % 3} if number % 3 else {},
        target_file_bytes=128 * MIB,
        right_sized_bytes=257_698_038 if number % 16 else 0,
        small_bytes=0,
    )


RUN = LivingRun("20260101T220000-ab12cd34", "glue-host", ago(18_245), ago(4))
COMMITS = tuple(commit(number, 14.0 * (64 - number)) for number in range(64))
OLD_COMMITS = tuple(each.model_copy(update={"decided_at": each.decided_at - timedelta(hours=2)}) for each in COMMITS)
RATES = Rates(900, 44_100_000, 76_300_000, 86_600_000)
RUNNING = Status(
    as_of=NOW,
    state=finding(Condition.RUNNING, ""),
    runs=(RUN,),
    last_heartbeat_at=None,
    backlog=Backlog(
        manifests=3,
        oldest_seconds=41.0,
        input_bytes=3_221_225_472,
        manifests_read=3,
        begun_manifests=2,
        oldest_begun="2026-01-02-00000041",
        oldest_begun_seconds=9.0,
        pending_parts=1,
        oldest_pending_seconds=20.0,
    ),
    rates=RATES,
    drain=drain(Backlog(), RATES, is_running=True),
    latency=Spread(4_576, 48.2, 91.0, 97.0),
    rejects=Rejects(64, 63, {"invalid_json": 41, "line_too_long": 22}),
    misfits=Misfits(64, 0, {}),
    dead_letters=DeadLetters(2, 2, 0, {}),
    quarantined_files=FilesQuarantined(64, 0, {}),
    schema=SchemaSeen(12, 148, "customer_loyalty_tier", ago(262_000)),
    recent=COMMITS,
    output_bytes_per_input_byte=0.24,
    sizes=output_sizes(COMMITS, 128 * MIB),
)
EMPTY = replace(
    RUNNING,
    runs=(),
    backlog=Backlog(),
    rates=Rates(900, 0, 0, None),
    latency=None,
    rejects=Rejects(0, 0, {}),
    misfits=Misfits(0, 0, {}),
    dead_letters=NO_LETTERS,
    quarantined_files=FilesQuarantined(0, 0, {}),
    schema=SchemaSeen(0, 0, "", None),
    recent=(),
    output_bytes_per_input_byte=None,
    sizes=OutputSizes(128 * MIB, 0, None),
)
LATE = replace(
    RUNNING.backlog,
    manifests=214,
    oldest_seconds=1_321.0,
    input_bytes=229_780_750_336,
    manifests_read=200,
    pending_parts=12,
    oldest_pending_seconds=31.0,
)
OLD = replace(LATE, oldest_seconds=7_400.0, oldest_begun_seconds=7_200.0, oldest_begun="2026-01-02-00000040")
MISSING_FILE = QuarantinedFile(
    manifest_id="2026-01-02-00000040",
    uri="s3://raw/2026-01-02/part-000017.ndjson.gz",
    status=FileStatus.MISSING,
    detail="it is gone",
    committed_at=ago(1_200),
    redriven=False,
    started_at=ago(1_260),
)
QUARANTINED = FilesQuarantined(
    64, 3, {"missing": 2, "unreadable": 1}, (MISSING_FILE, replace(MISSING_FILE, redriven=None))
)


def judged(found: Status, rules: Rules = RULES) -> Status:
    """A status with the state and the time to drain that follow from the rest of it."""
    found = replace(found, drain=drain(found.backlog, found.rates, is_running=bool(found.runs)))
    return replace(found, state=health(found, rules))


STATUSES = {
    "empty": judged(EMPTY, ON_A_LAPTOP),
    "idle": judged(replace(RUNNING, backlog=Backlog())),
    "running": judged(RUNNING),
    "stopping": judged(replace(RUNNING, runs=(replace(RUN, asked_to_stop_at=ago(25)),))),
    "behind": judged(replace(RUNNING, backlog=LATE)),
    "losing": judged(replace(RUNNING, backlog=LATE, rates=replace(RATES, arriving_bytes_per_second=194_000_000))),
    "dead_letters": judged(
        replace(
            RUNNING,
            dead_letters=DeadLetters(61, 50, 4, {"bad_uri": 2, "not_json": 1, "retries_exhausted": 1}, LETTERS),
            quarantined_files=QUARANTINED,
        )
    ),
    "files": judged(replace(RUNNING, quarantined_files=QUARANTINED)),
    "stuck": judged(replace(RUNNING, backlog=OLD, recent=OLD_COMMITS, rates=Rates(900, 44_100_000, 0, 86_600_000))),
    "stopped": judged(replace(RUNNING, runs=(), backlog=LATE)),
    "died": judged(replace(RUNNING, runs=(), last_heartbeat_at=ago(754), backlog=LATE), ON_A_LAPTOP),
}
