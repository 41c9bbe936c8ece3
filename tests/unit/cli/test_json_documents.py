"""What `--json` prints is a contract: a JSON Schema for each command, which the package ships."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.memory.glue import MemoryGlue, MemoryQueue
from compactor.adapters.memory.store import ManualClock, MemoryMetrics
from compactor.adapters.memory.table import MemoryTable
from compactor.api import folder_run
from compactor.api.compact_result import CompactResult
from compactor.cli.commands import control, deploy, rejects, stop
from compactor.cli.commands.report import make_report
from compactor.cli.entry import compactor as command
from compactor.cli.plan_result import InventoryPlan, result_of
from compactor.cli.ui.output import json_text, print_json
from compactor.control.decisions import Action, ActionKind
from compactor.control.plane import Check
from compactor.control.snapshot import JobRun, JobState, Refusals, Snapshot
from compactor.core.documents.changes import Why
from compactor.core.documents.manifest import FileRange, ManifestFile
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.errors import ExitCode, StoreUnavailable, StuckError
from compactor.core.layout import ManifestKey
from compactor.core.logs.names import LogGap, LogName
from compactor.cost.planning_cost import PlanningCost
from compactor.cost.prices import JobSize
from compactor.job.report import RunReport
from compactor.job.service import Service
from compactor.ledger.accounts.account import QuarantinedFile
from compactor.ledger.backlog import Backlog
from compactor.ledger.heartbeat import Heartbeat
from compactor.ledger.housekeeping import FailingTask
from compactor.ledger.sizing import with_share
from compactor.ndjson.diagnosis import Fault
from compactor.ndjson.files.envelopes import Envelope
from compactor.ops.accept.acceptor import Acceptor, Losses, LostRange, NotLost
from compactor.ops.accept.dismisser import Dismisser, Dismissible
from compactor.ops.canary.checker import CanaryStopped
from compactor.ops.canary.progress import Hop, Progress
from compactor.ops.forget.erasing_stager import ErasingStager
from compactor.ops.rebuild.rebuild_report import Rebuilt
from compactor.ops.status.flow import misfits
from compactor.ops.status.values import OutputSizes, SchemaSeen, StatusFailure
from compactor.ops.table.mergeable import MergeReport, NotMerged
from compactor.ops.trace.tables import TracedTable
from compactor.ops.trace.trace import TracedReject, TraceResult
from compactor.ops.verify.report import ExpiredFiles, VerifiedTable, VerifyResult
from compactor.schema.catalog import OtherType, Published
from compactor.settings.compact_paths import parse_compact_paths
from compactor.settings.settings import Settings, load_settings
from compactor.sources.claiming import claim_key
from compactor.sources.inventory.document import Inventory
from compactor.sources.landing.result import LandingResult
from compactor.sources.landing.seen import LogSeen
from compactor.sources.plan import LeftOut, Plan
from compactor.table.committer import Committer
from compactor.table.standing import TableSeen
from compactor.upkeep.expiring import Expirer
from compactor.wiring import operator_components
from compactor.wiring.control import ControlComponents
from compactor.wiring.job.app import App
from tests.support.fakes import FailingEngine, PlainEngine
from tests.support.harness import Harness
from tests.support.json_documents import check_documents
from tests.support.json_shapes import shape_of, shape_of_schema
from tests.support.report_day import TEN_WORKERS, WHOLE_DAY, ReportDay, report_on
from tests.support.statuses import COMMITS, MISSING_FILE, STATUSES
from tests.support.streams import write_stream_settings
from tests.support.workspace import DAY, GOOD, Workspace, make_workspace
from tools.json_schemas import FOLDER, NAMES, schema_of, text_of

Documents = list[Any]

OLDER: dict[str, Any] = {"arrived_at": None}
"""What the summary of a commit may lack."""

GONE = f'{{"version": 1, "manifest_id": "gone", "date": "{DAY}", "files": [{{"uri": "raw/gone.ndjson"}}]}}'
"""A manifest of a file that is not there."""

FULL = COMMITS[1].model_copy(
    update={"quarantined": {"missing": 1}, "misfits": {"amount": 2}, "redriven": {"line_too_long": 1}}
)

TYPED = VerifyResult(
    rescued_values=2,
    misfits=Counter(amount=2),
    expired=[ExpiredFiles(DAY, "rows", "expired on 2026-01-02", 3)],
    table=VerifiedTable("lake.events", 1, 2, 3, 4, 5, 6.0, 7, "the catalog does not answer"),
    quarantined_files=[replace(MISSING_FILE, redriven=None)],
)
"""What is verified of output with types, of which something expired, and with a table."""

TABLES_SEEN = (
    TableSeen("lake.events"),
    TableSeen("lake.events", COMMITS[0].decided_at, 1, 2.0, 3, 4, COMMITS[0].decided_at, 5, "no answer", 3660.0),
)
"""A table before and after the first commit."""

LOGS_SEEN = (
    LogSeen(name="kafka://main/events"),
    LogSeen(name="kinesis://main/others", seen_at=COMMITS[0].decided_at, gaps=1, error="no answer"),
)
"""A log before and after the first landing."""

FAILING = (FailingTask("table merge", COMMITS[0].decided_at, COMMITS[0].decided_at, "denied"),)
"""Upkeep of the table that fails."""

NEW_TABLE = VerifyResult(table=VerifiedTable("lake.events"))
"""What is verified beside a table without a batch."""


def quarantined(workspace: Workspace) -> str:
    """A commit with a missing file and a rejected line, and two dead letters; the committed manifest's id."""
    manifest_id = workspace.plan()
    (workspace.root / "raw" / f"{DAY}-good.ndjson").unlink()
    for name in ("broken", "torn"):
        (workspace.root / "m" / f"{name}.json").write_text("{")
    workspace.compact()
    return manifest_id


def plans(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    raw = str(workspace.root / "raw")
    (workspace.root / "raw" / "_SUCCESS").write_bytes(b"")
    dry = workspace.json("plan", raw, "--dry-run")[0]
    first = workspace.json("plan", raw)[0]
    late = workspace.root / "raw" / f"{DAY}-late.ndjson"
    late.write_bytes(GOOD)
    app, info = workspace.app, workspace.app.store.stat(str(late))
    file = ManifestFile(uri=str(late), etag=info.etag)
    app.claims.claim([claim_key(file)], "of-another-planner", now=app.clock.now(), lease_seconds=300)
    inventory = Inventory("s3://b/manifest.json", "lake", COMMITS[0].decided_at, "CSV", (), ())
    of_inventory = result_of(Plan(), InventoryPlan(inventory, Plan(), PlanningCost()), dry_run=False)
    log, troubles = LogName("kafka", "main", "events"), [StoreUnavailable("it is throttled")]
    landed = LandingResult(gaps=[LogGap(log, "0", 3, 10)], former_ids=["one"], troubles=troubles)
    of_logs = [result_of(Plan(), None, each, dry_run=False) for each in (landed, LandingResult(behind_seconds=1.5))]
    printed = [_printed(each) for each in (of_inventory, *of_logs)]
    return [dry, first, workspace.json("plan", raw)[0], *printed]


def statuses(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    found = [workspace.json("status")[0]]
    quarantined(workspace)
    app = workspace.app
    with app.heartbeat:
        found.append(workspace.json("status")[0])
    retired(workspace)
    found.append(workspace.json("status")[0])
    unread = replace(STATUSES["behind"].backlog, input_bytes=None)
    older = COMMITS[0].model_copy(update={**OLDER, "redriven": {"line_too_long": 1}})
    old = replace(STATUSES["idle"], recent=(older, FULL), backlog=unread)
    old = replace(old, misfits=misfits(old.recent))
    listed = [replace(old, table=each, logs=LOGS_SEEN, housekeeping=FAILING) for each in TABLES_SEEN]
    empty = replace(old, sizes=OutputSizes(1, 1, with_share(0, 0, 0)))
    empty = replace(empty, schema=SchemaSeen(0, 0, "", None, "schemas/1.json: damaged"))
    found += [_printed(scene) for scene in (*STATUSES.values(), old, empty, *listed)]
    found.append(_printed(StatusFailure(COMMITS[0].decided_at, "the store is away")))
    return found


def _printed(result: object) -> Any:
    return json.loads(json_text(result))


def verifications(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    quarantined(workspace)
    fine = workspace.json("verify")[0]
    [path] = (workspace.root / "o").rglob("*.parquet")
    path.unlink()
    damaged = [workspace.json("verify", *more)[0] for more in ((), ("--deep",))]
    return [fine, *damaged, *map(_printed, (TYPED, NEW_TABLE))]


def retired(workspace: Workspace) -> None:
    """Have all files of the one date expire."""
    app = workspace.app
    ids = {key.id: 1 for key in app.ledger.manifests(DAY)}
    Expirer(app.state).expire(Why.RETIRED, DAY, "00000001-all", "`compactor retire --before 2026-01-01`", ids)


def rejections(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    workspace.plan()
    workspace.compact()
    found = [workspace.json("rejects")[0]]
    monkeypatch.setattr(rejects, "diagnosed_line", lambda _: Fault(None, "no place is known"))
    found.append(workspace.json("rejects")[0])
    [path] = (workspace.root / "s" / "rejects").rglob("*.parquet")
    data = path.read_bytes()
    path.unlink()
    found.append(workspace.json("rejects")[0])
    path.write_bytes(data)
    retired(workspace)
    return [*found, workspace.json("rejects")[0]]


def traces(workspace: Workspace, _monkeypatch: pytest.MonkeyPatch) -> Documents:
    settings = workspace.config.read_text()
    few = '[input]\nmax_rejected_lines = 1\non_too_many_rejects = "keep_rows"'
    workspace.config.write_text(settings.replace("[input]", few))
    with (workspace.root / "raw" / f"{DAY}-flawed.ndjson").open("a") as file:
        file.write("one more\n")
    flawed, good = workspace.raw(f"{DAY}-flawed.ndjson"), workspace.raw(f"{DAY}-good.ndjson")
    found = [workspace.json("trace", flawed)[0]]
    manifest_id = workspace.plan()
    for _ in range(4):  # so often, and then it is seen that it was tried often enough
        engine = FailingEngine(workspace.app.store, ValueError("too much"))
        workspace.app.scheduler(engine).run([workspace.app.layout.manifest(manifest_id)])
        found.append(workspace.json("trace", manifest_id)[0])
    letter = quarantined_twice(workspace)
    found += [
        workspace.json("trace", each)[0]
        for each in (flawed, good, letter, *map(str, (workspace.root / "o").rglob("*.p*")))
    ]
    found.append(workspace.json("trace", "other")[0])
    retired(workspace)
    found.append(workspace.json("trace", good)[0])
    compacted = next(each for each in found if each["counts"])
    # Of a file with redriven lines, which takes another limit: `test_cli_redrive` has one.
    counts = {**compacted["counts"], "redriven_by_reason": {"line_too_long": 1}}
    behind = FileRange(continues="/raw/x", from_byte=2, to_byte=9, lines_before=1, digest_before="b", digest="c")
    report = FileReport(
        range=behind,
        uri="/raw/country=DE/x",
        status=FileStatus.COMPACTED,
        path_columns={"country": "DE"},
    )
    unread = QuarantinedFile("m", "a", FileStatus.MISSING, "no such object", WHOLE_DAY.since, None, WHOLE_DAY.since)
    rejected = [TracedReject(1, "invalid_json")]
    with_columns = TraceResult(report.uri, report=report, files=[report], quarantined=[unread], rejected=rejected)
    waiting = TracedTable("lake.events", "waiting", waiting_seconds=1.5)
    listed = TracedTable("lake.events", "listed", 3, 4, error="no answer", merged_files=("/merged.parquet",))
    held = TracedTable("lake.events", "held_back", 5, reason="no such file")
    made = [with_columns, *(replace(with_columns, table=each) for each in (waiting, listed, held))]
    documents = [_printed(each) for each in made]
    return [*found, {**compacted, "counts": counts}, *documents]


def quarantined_twice(workspace: Workspace) -> str:
    """What failed is redriven, one of its files is gone by then, and the rest is redriven again."""
    [letter] = [each["manifest_id"] for each in workspace.json("verify")[0]["dead_letter_manifests"]]
    workspace.call("redrive", "manifests", letter)
    Path(workspace.raw(f"{DAY}-good.ndjson")).unlink()
    workspace.compact()
    workspace.call("redrive", "rejects", f"{letter}-r1")
    return str(letter)


def rebuilds(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """Files that are lost come back with a surplus one beside them; then the engine fails, and the input is gone."""
    made = App.rebuilder
    manifest_id = workspace.plan()
    workspace.compact()
    found = [workspace.json("rebuild")[0]]
    folder = next((workspace.root / "o").rglob("*.parquet")).parent
    (folder / f"{manifest_id}-00009.snappy.parquet").write_bytes(b"")
    for engine in (
        PlainEngine(workspace.app.store, metadata_columns=workspace.app.settings.metadata_columns),
        FailingEngine(workspace.app.store, ValueError("too much")),
    ):
        monkeypatch.setattr(App, "rebuilder", lambda app, engine=engine: made(app, lambda _: engine))
        (folder / f"{manifest_id}-00000.snappy.parquet").unlink()
        found += [workspace.json("rebuild", "--dry-run")[0], workspace.json("rebuild")[0]]
    Path(workspace.raw(f"{DAY}-good.ndjson")).unlink()
    return [*found, workspace.json("rebuild")[0]]


def redrives(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    manifest_id = quarantined(workspace)
    (workspace.root / "raw" / f"{DAY}-good.ndjson").write_bytes(GOOD)
    found = [workspace.json("redrive", "files", "--dry-run")[0], workspace.json("redrive", "manifests", "--dry-run")[0]]
    found.append(workspace.json("redrive", "rejects", manifest_id, "broken")[0])
    found.append(workspace.json("redrive", "files")[0])
    for path in (workspace.root / "m").glob("*-r*.json"):
        path.unlink()
    found.append(workspace.json("redrive", "files")[0])
    return found


def schemas(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    declared = workspace.root / "schema.toml"
    declared.write_text('[[columns]]\nname = "at"\ntype = "timestamp"\nepoch = "seconds"\n')
    with workspace.config.open("a") as config:
        config.write(f'[schema]\nfile = "{declared}"\nmax_columns = 2\n')
    workspace.plan()
    workspace.compact()
    shown = workspace.json("schema")[0]
    junk = next(column["name"] for column in shown["versions"][-1]["added"] if column["source_uri"] and column["key"])
    done = Published("lake.events", 1, ("at",), (OtherType("n", "int", "string"),))
    monkeypatch.setattr(App, "publish_columns", lambda _: done)
    return [shown, workspace.json("schema", "retire", junk)[0], workspace.json("schema", "publish")[0]]


def cleanings(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    workspace.plan()
    workspace.compact()
    [done] = (workspace.root / "s" / "ledger").rglob("done.json")
    done.unlink()
    return [workspace.json("clean", "--archive-days", "0", "--dry-run")[0]]


def closings(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    """A date that is too new, one that is quiet, and one that does not add up."""
    workspace.plan()
    workspace.compact()
    found = [workspace.json("close")[0]]
    hour_ago = time.time() - 49 * 3600
    for file in (workspace.root / "s").rglob("*.json"):
        os.utime(file, (hour_ago, hour_ago))
    [lost] = (workspace.root / "o").rglob("*.parquet")
    data = lost.read_bytes()
    lost.unlink()
    document, code = workspace.json("close")
    assert (code, document["needs_operator"]) == (ExitCode.NEEDS_OPERATOR, True)
    lost.write_bytes(data)
    return [*found, document, workspace.json("close")[0]]


def retirements(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    """A date that is open, and one that is closed; then a deletion that was not finished."""
    workspace.plan()
    workspace.compact()
    workspace.json("close")
    refused, code = workspace.json("retire", "--before", "2026-01-01", "--yes")
    assert (code, len(refused["refused"])) == (ExitCode.NEEDS_OPERATOR, 1)
    days_ago = time.time() - 49 * 3600
    for file in (workspace.root / "s").rglob("*.json"):
        os.utime(file, (days_ago, days_ago))
    workspace.json("close")
    assert workspace.call("retire", "--before", "2026-01-01").exit_code == ExitCode.WRONG_USAGE
    documents = [workspace.json("retire", "--before", "2026-01-01", each)[0] for each in ("--dry-run", "--yes")]
    assert list((workspace.root / "o").rglob("*.parquet")) == []
    return [refused, *documents, workspace.json("retire", "--before", "2026-01-01", "--yes")[0]]


def acceptances(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """Without anything to accept, and with a gap."""
    nothing = workspace.json("accept", "--why", "late")[0]
    lost = LostRange("m1", "kafka://main/events/0?from=0&to=2", 2, "retention removed offsets 0 to 1")
    losses = Losses([lost], [NotLost("m2", "", "its commit cannot be read")])
    monkeypatch.setattr(Acceptor, "find", lambda *_, **__: losses)
    assert workspace.call("accept", "--why", "late").exit_code == ExitCode.WRONG_USAGE
    assert "2 offsets of 1 range" in workspace.call("accept", "--why", "late", "--dry-run", "m1").output
    document, code = workspace.json("accept", "--why", "late", "--dry-run")
    assert code == ExitCode.NEEDS_OPERATOR
    return [nothing, document, workspace.json("accept", "--why", "late", "--yes")[0]]


def dismissals(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """Of a file that is not there, and of one that is quarantined, whose redrive can or cannot be read."""
    nothing, code = workspace.json("dismiss", "no-such.csv", "--why", "late")
    assert code == ExitCode.NEEDS_OPERATOR
    files = [MISSING_FILE, replace(MISSING_FILE, redriven=None)]
    monkeypatch.setattr(Dismisser, "find", lambda *_: Dismissible(files))
    return [nothing, workspace.json("dismiss", "a.csv", "--why", "late")[0]]


def erasures(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """A dry run, one that fails, one with a surplus file beside it that leaves its input, and one that leaves work."""
    manifest_id = workspace.plan()
    workspace.compact()
    values = workspace.root / "values.txt"
    values.write_text("3\n")
    words = ("forget", "--key", "id", "--value-file", str(values))
    found = [workspace.json(*words, "--dry-run")]
    with monkeypatch.context() as patch:
        patch.setattr(ErasingStager, "stage", lambda *_: max(()))
        found.append(workspace.json(*words, "--yes"))
    folder = next((workspace.root / "o").rglob("*.parquet")).parent
    (folder / f"{manifest_id}-00009.snappy.parquet").write_bytes(b"")
    found.append(workspace.json(*words, "--yes"))
    (workspace.root / "raw" / "later.ndjson").write_bytes(b"{}\n")
    workspace.plan()
    found.append(workspace.json(*words, "--yes", "--inputs", "delete"))
    assert [code for _, code in found] == [3, 1, 3, 3]
    return [document for document, _ in found]


def tables(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """A table that is not there, one that is made from what was there before, and one with files of others."""
    memory = MemoryTable()
    monkeypatch.setattr(operator_components, "iceberg_catalog", lambda _: memory)
    workspace.plan()
    workspace.compact()
    with workspace.config.open("a") as config:
        config.write('[output]\ntable = "iceberg"\n[table]\nname = "lake.events"\nuri = "http://localhost"\n')
    gone, code = workspace.json("table")
    assert (code, gone["exists"]) == (ExitCode.NEEDS_OPERATOR, False)
    made = workspace.json("table", "rebuild")[0]
    assert (made["adopted"], made["needs_operator"]) == (1, False)
    head, [file, *_] = memory.head(), memory.live_files()
    assert head is not None
    memory._replace(head, (file, replace(file, records=file.records + 1)))
    twice = workspace.json("table")[0]
    assert (len(twice["doubled"]), len(twice["differing"])) == (1, 1)
    memory.rewrite(lambda file: replace(file, uri=f"{file.uri}-of-others"))
    other, code = workspace.json("table")
    assert (code, len(other["surplus"])) == (ExitCode.NEEDS_OPERATOR, 1)
    assert "Surplus: 1" in workspace.call("table").stdout
    memory.drop()
    memory.exists = lambda _: False
    held = workspace.json("table", "rebuild")[0]
    assert [each["generation"] for each in held["held"]] == [1]
    printed = workspace.call("table")
    assert "Held back: 1" in printed.stdout
    assert "`compactor table rebuild` takes it in again" in printed.stderr
    memory.drop()
    without = workspace.json("table", "maintain")[0]
    assert (without["exists"], without["dry_run"]) == (False, False)
    memory.exists = lambda _: True
    with monkeypatch.context() as patch:
        patch.setattr(Committer, "_hindrance", lambda *_: StuckError("its rows were moved"))
        stuck, code = workspace.json("table", "rebuild")
        assert (code, stuck["stuck"][0]["why"]) == (ExitCode.NEEDS_OPERATOR, "its rows were moved")
        printed = workspace.call("table", "rebuild")
        assert "Stuck: 1" in printed.stdout
        assert "1 manifest could not be added" in printed.stderr
    workspace.json("table", "rebuild")
    merged = workspace.json("table", "merge", "--dry-run")[0]
    assert (merged["exists"], merged["merged_files"], merged["before"]["hit_rate"]) == (True, 0, 1.0)
    left = MergeReport("lake.events", not_merged=[NotMerged("/o/a.parquet", "expected a whole Parquet file")])
    refused = _printed(left)
    return [gone, made, twice, other, held, without, stuck, merged, refused]


def costs(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    result = CliRunner().invoke(command, ["cost", "--json"], env={"COMPACTOR_CONFIG": None})
    bench = workspace.root / "bench.json"
    bench.write_text(
        '{"megabytes_per_second": {"spark": 172, "native": 640}, "cores": 2, "machine": "Linux x86_64",'
        ' "measured_at": "2026-11-21T10:00:00Z"}'
    )
    workspace.app.ledger.remember(COMMITS[0].model_copy(update={"input_bytes": 0}))
    nothing = workspace.json("cost")[0]
    workspace.app.ledger.remember(COMMITS[1])
    quarantined(workspace)
    past = workspace.json("cost", "--from-ledger")[0]
    config = write_stream_settings(workspace.root / "streams", "a", "b")
    App(load_settings(config, {}).of_stream("b")).ledger.remember(COMMITS[1])
    streams = CliRunner().invoke(command, ["--config", str(config), "cost", "--json"])
    past |= {"streams": json.loads(streams.stdout)["streams"]}
    return [
        json.loads(result.stdout),
        nothing,
        past,
        workspace.json("cost", "--bench", str(bench), "--topic", "msk")[0],
    ]


def looks(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """The control plane over a job, queues and topic in memory, in good times and in bad ones."""
    clock = ManualClock()
    glue, queue = MemoryGlue(clock), MemoryQueue()

    def parts(settings: Settings) -> ControlComponents:
        found = ControlComponents(settings, clock=clock, job=glue, metrics=MemoryMetrics())
        monkeypatch.setattr(found, "_queue", lambda _: queue)
        return found

    monkeypatch.setattr(control, "ControlComponents", parts)
    found = [
        workspace.json("control", "--close-breaker")[0],
        workspace.json("control", "--dry-run")[0],
        workspace.json("control")[0],
    ]
    app = workspace.app
    found += [workspace.json("control")[0], workspace.json("control", "--dry-run")[0]]
    with Heartbeat(app.store, app.layout, clock, "run", app.heartbeat._process):
        found.append(workspace.json("control", "--dry-run")[0])
        app.runs.ask_to_stop("run")
        found.append(workspace.json("control", "--dry-run")[0])
    glue.definition_changed_at = clock.now()
    clock.advance(60)
    glue.end("jr_000001", JobState.FAILED, "out of memory")
    found.append(workspace.json("control", "--dry-run")[0])
    with glue.trouble():
        found += [workspace.json("control", "--dry-run")[0], workspace.json("control")[0]]
    sources = parts(app.settings).sources
    sources.keep_seen(Refusals(1, clock.now()), None)
    glue.timeout_seconds = 600.0
    clock.advance(3600)
    found += [workspace.json("control")[0], workspace.json("control", "--dry-run")[0]]
    size = JobSize("G.2X", 10, "6.0")
    run = JobRun("jr", JobState.RUNNING, clock.now(), clock.now(), size=size)
    unknown = Snapshot(runs=None, heartbeats=None, backlog=None, begun=None, recent=None, logs=None)
    seen = Snapshot(
        logs=LOGS_SEEN,
        runs=(run,),
        recent=(COMMITS[0], COMMITS[1].model_copy(update=OLDER), FULL),
        queue_oldest_seconds=12.5,
        begun={"m1": clock.now()},
    )
    stopping = Action(ActionKind.STOP, "it hangs", targets=("jr",))
    for snapshot in (unknown, seen):
        step = Check(snapshot, (stopping,), failed=("run jr could not be stopped",))
        found.append(_printed(step))
    return found


def stops(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    monkeypatch.setattr(stop, "_POLL_SECONDS", 0.01)
    app = workspace.app
    with app.heartbeat:
        return [workspace.json("stop")[0], workspace.json("stop", "--wait", "0.01")[0]]


class Canary:
    """A deployment through which a file goes, or in which it stops."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.seconds = lambda: 0.0

    def leftovers(self) -> list[str]:
        return ["s3://raw/compactor-check/2000-01-01-old.ndjson"]

    def send(self, canary_id: str) -> str:
        return f"s3://raw/compactor-check/2000-01-01-{canary_id}.ndjson"

    def follow(self, _uri: str, _timeout_seconds: float) -> Iterator[tuple[Hop, Progress]]:
        yield Hop("sent", 0.0), self.progress
        if self.progress.stage != "done":
            raise CanaryStopped(self.progress)

    def has_row(self, *_: object) -> bool:
        return True

    def clean(self, _key: ManifestKey) -> bool:
        return True


def deployments(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    found = []
    for progress in (Progress("done", "m", DAY), Progress("waiting")):
        monkeypatch.setattr(deploy, "canary_checker", lambda _, made=progress: Canary(made))
        found.append(workspace.json("deploy", "check")[0])
    return found


def compactions(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """One folder into another by a fake engine: planned, interrupted, held, failed, stuck, and quarantined."""
    raw, rows = str(workspace.root / "raw"), str(workspace.root / "rows")
    for path in (workspace.root / "raw").iterdir():
        os.utime(path, (0, 0))  # old, so that the planner does not wait for its writer
    (workspace.root / "raw" / "_SUCCESS").write_bytes(b"")

    def service(_run: object, app: App, _: ExitStack) -> Service:
        source = ListedManifests(app.store, app.layout.manifests_folder)
        return app.service_on(PlainEngine(app.store, metadata_columns=app.settings.metadata_columns), source)

    monkeypatch.setattr(folder_run, "check_java", lambda: None)
    monkeypatch.setattr(folder_run.FolderRun, "_service", service)
    words = ("compact", raw, rows, "--engine", "spark", "--json")
    found = [json.loads(CliRunner().invoke(command, [*words, *more]).stdout) for more in (["--dry-run"], [], [])]
    (workspace.root / "rows.compactor" / "manifests" / "torn.json").write_text("{")
    (workspace.root / "rows.compactor" / "manifests" / "gone.json").write_text(GONE.replace("raw", raw))
    next((workspace.root / "rows").rglob("*.parquet")).unlink()
    found.append(json.loads(CliRunner().invoke(command, words).stdout))
    held = CompactResult(
        parse_compact_paths(raw, rows),
        "/rows.rejects",
        Plan(skipped={"empty": 1}, held=2, held_until=COMMITS[0].decided_at, left_out=[LeftOut("/a", "changed", "b")]),
        dry_run=False,
        deep=False,
        resumed_manifests=0,
        settled=[MISSING_FILE, replace(MISSING_FILE, redriven=None)],
        rebuilt=[Rebuilt("m1", "a file was replaced", 2, 1, 1, 3, 0)],
        run=RunReport(failures={"m1": "it is too much"}, stuck={"m2": "a record is damaged"}),
        backlog=Backlog(manifests=2, begun_manifests=1, input_bytes=400),
        envelopes=[Envelope("/b", "Records", 120, 1)],
    )
    typed = replace(
        held,
        run=RunReport(),
        backlog=Backlog(input_bytes=None),
        verified=TYPED,
        schema_file="/rows.compactor/schema.toml",
    )
    new = replace(typed, verified=NEW_TABLE)
    return [*found, *map(_printed, (held, typed, new))]


def checkups(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    """With folders that are fine, with settings that are not, and without any; no look at the machine."""
    fine = workspace.json("doctor", "--elsewhere")[0]
    workspace.config.write_text("[paths]\n")
    unset = CliRunner().invoke(command, ["doctor", "--elsewhere", "--json"], env={"COMPACTOR_CONFIG": None})
    return [fine, workspace.json("doctor", "--elsewhere")[0], json.loads(unset.stdout)]


def reports(workspace: Workspace, _: pytest.MonkeyPatch) -> Documents:
    """Of work that was done, of nothing, of a long day with a price and without an SLA, and of a damaged ledger."""
    nothing = workspace.json("report")[0]
    quarantined(workspace)
    real = workspace.json("report")[0]
    retired(workspace)
    later = workspace.json("report")[0]
    harness = Harness()
    ReportDay(harness, files=2).fill(manifests=12)
    harness.store.put(harness.layout.outcome(ManifestKey("2025-12-21", "m-000003")), b"{")
    day = report_on(harness)
    figures = day.figures
    gone = QuarantinedFile("m", "a", FileStatus.MISSING, "no such object", WHOLE_DAY.since, None, WHOLE_DAY.since)
    unknown = replace(
        figures,
        dead_letters=replace(
            figures.dead_letters, latest=tuple(replace(each, redriven=None) for each in figures.dead_letters.latest)
        ),
        quarantined_files=replace(figures.quarantined_files, latest=(gone,)),
    )
    priced = [
        make_report(each.app(), WHOLE_DAY, TEN_WORKERS, is_job_named=True, with_samples=False)
        for each in (harness, Harness())
    ]
    sizes = replace(figures.sizes, by_bytes=with_share(10, 5, 0))
    followed = replace(figures, sizes=sizes, logs=LOGS_SEEN, housekeeping=FAILING)
    listed = [replace(day, figures=replace(followed, table=each)) for each in TABLES_SEEN]
    changed = [replace(day, figures=unknown), replace(day, sla_seconds=None), *listed]
    made = [day, *changed, *priced]
    return [nothing, real, later, *map(_printed, made)]


COMMANDS: dict[str, Callable[[Workspace, pytest.MonkeyPatch], Documents]] = {
    "plan": plans,
    "status": statuses,
    "verify": verifications,
    "rejects": rejections,
    "trace": traces,
    "rebuild": rebuilds,
    "redrive": redrives,
    "schema": schemas,
    "clean": cleanings,
    "close": closings,
    "retire": retirements,
    "accept": acceptances,
    "dismiss": dismissals,
    "forget": erasures,
    "table": tables,
    "cost": costs,
    "control": looks,
    "stop": stops,
    "deploy": deployments,
    "compact": compactions,
    "doctor": checkups,
    "report": reports,
}
"""For each command: what prints its documents, in every form that they have."""

OF_STREAMS = {"status", "verify", "report"}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder without a benchmark result."""
    monkeypatch.chdir(tmp_path)


def shipped(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.schema.json").read_text())
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_documents_match_their_schema(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is what its schema says, and every key of the schema is seen with each of its types."""
    documents = COMMANDS[name](make_workspace(tmp_path), monkeypatch)
    if name in OF_STREAMS:  # several streams have these documents side by side
        whole = [each for each in documents if "error" not in each]
        documents = [*documents, {"streams": [{"stream": "orders", **each} for each in whole]}]
    check_documents(name, documents)
    shape, maps = shape_of_schema(shipped(name))
    seen = shape_of(documents, maps)
    assert seen == shape, "the schema has keys or types that no document has: correct it, or add a document"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_schema_is_what_the_types_say(name: str) -> None:
    """A schema is valid, is closed, describes each key, and is the one that the generator writes."""
    schema = shipped(name)
    Draft202012Validator.check_schema(schema)
    for node in [schema, *schema.get("$defs", {}).values()]:
        properties = node.get("properties", {})
        assert not properties or (node["additionalProperties"] is False and node["required"] == list(properties))
        # Where a key has no words of its own, those of the object that it refers to hold.
        assert all(each.get("description", ".").endswith(".") for each in properties.values())
        assert all("description" in each or "$ref" in each for each in properties.values())
    assert text_of(schema_of(name)) == text_of(schema), "python -m tools.json_schemas, and CHANGELOG.md"


def test_every_document_has_a_schema() -> None:
    """Each command that takes --json ships the schema of its documents, and prints it."""
    with_json = {
        name for name, each in command.commands.items() if any("--json" in option.opts for option in each.params)
    }
    assert with_json == set(COMMANDS) == set(NAMES) == {path.name.split(".")[0] for path in FOLDER.iterdir()}
    for name in with_json:
        printed = CliRunner().invoke(command, [name, "--json-schema"], env={"COMPACTOR_CONFIG": None})
        assert (printed.exit_code, json.loads(printed.stdout)) == (0, shipped(name))


def test_a_document_that_differs_is_noticed() -> None:
    """A new key, a missing one and a wrong type are faults, also of what any other test prints."""
    fine = {"asked": [], "running": []}
    check_documents("stop", [fine])
    for wrong in ({**fine, "new": 1}, {"asked": []}, {**fine, "asked": None}, {**fine, "running": [{}]}):
        with pytest.raises(ValidationError):
            check_documents("stop", [wrong])
    with pytest.raises(ValidationError):
        CliRunner().invoke(printer, ["stop", "--json"])


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True)
def printer(name: str, *, as_json: bool) -> None:
    """Print what no command prints."""
    click.echo(json.dumps({"name": name, "as_json": as_json}))


def test_units() -> None:
    """No key holds anything but plain units: seconds, bytes, dollars."""
    odd = re.compile(r"_(ms|millis|minutes|hours|days_ago|kb|mb|gb|megabytes)\b")
    assert [path for name in COMMANDS for path in shape_of_schema(shipped(name))[0] if odd.search(path)] == []


def test_times_are_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    """A time in another zone would be refused by the shape; those of the clock end with a Z."""
    print_json({"as_of": STATUSES["idle"].as_of})
    assert json.loads(capsys.readouterr().out) == {"as_of": "2026-01-02T03:04:05Z"}
    with pytest.raises(AssertionError, match="not in UTC"):
        shape_of([{"as_of": "2026-01-02T03:04:05+01:00"}], ())
