"""What `--json` prints is a contract: its shape is stored, and `docs/json.md` names every key of it."""

import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.memory.glue import MemoryGlue, MemoryQueue
from compactor.adapters.memory.store import ManualClock, MemoryMetrics
from compactor.cli.commands import compact, control, status, stop
from compactor.cli.entry import compactor as command
from compactor.cli.ui import output
from compactor.cli.ui.compact_report import Closing
from compactor.cli.ui.output import print_json
from compactor.cli.ui.watching import failure
from compactor.control.actions import Action, ActionKind
from compactor.control.plane import Check
from compactor.control.runs import JobRun, JobState
from compactor.control.snapshot import Snapshot
from compactor.core.manifest import ManifestFile
from compactor.cost.prices import JobSize
from compactor.engines.engine import Staged, StageRequest
from compactor.job.service import RunReport, Service
from compactor.ledger.backlog import Backlog
from compactor.ledger.heartbeat import Heartbeat
from compactor.manifests.claiming import claim_key
from compactor.manifests.planning import Plan
from compactor.ops.report.figures import AddedColumn, QuarantinedFile
from compactor.settings.compact_paths import parse_compact_paths
from compactor.settings.settings import Settings
from compactor.wiring.app import App
from compactor.wiring.control import ControlComponents
from tests.support.fakes import PlainEngine
from tests.support.harness import Harness
from tests.support.json_shapes import Shape, shape_of
from tests.support.report_day import WHOLE_DAY, ReportDay, report_on
from tests.support.status_scenes import COMMITS, SCENES
from tests.support.stored import check_stored
from tests.support.workspace import DAY, GOOD, Site, make_site

ROOT = Path(__file__).parents[3]
STORED = ROOT / "tests" / "cases" / "json_shapes"
DOCUMENT = ROOT / "docs" / "json.md"

Documents = list[Any]

OLDER: dict[str, Any] = {"arrived_at": None}
"""What the summary of a commit may lack."""

GONE = f'{{"version": 1, "manifest_id": "gone", "date": "{DAY}", "files": [{{"uri": "raw/gone.ndjson"}}]}}'
"""A manifest of a file that is not there."""

FULL = COMMITS[1].model_copy(update={"quarantined": {"missing": 1}})


class FailingEngine:
    """An engine for which every manifest is too much."""

    name = "failing"

    def is_healthy(self) -> bool:
        return True

    def stage(self, request: StageRequest) -> Staged:
        raise ValueError(f"{request.manifest.manifest_id} is too much")


def quarantined(site: Site) -> str:
    """A commit with a missing file and a rejected line, and two dead letters; the committed manifest's id."""
    manifest_id = site.plan()
    (site.root / "raw" / f"{DAY}-good.ndjson").unlink()
    for name in ("broken", "torn"):
        (site.root / "m" / f"{name}.json").write_text("{")
    site.compact()
    return manifest_id


def plans(site: Site, _: pytest.MonkeyPatch) -> Documents:
    raw = str(site.root / "raw")
    (site.root / "raw" / "_SUCCESS").write_bytes(b"")
    dry = site.json("plan", raw, "--dry-run")[0]
    first = site.json("plan", raw)[0]
    late = site.root / "raw" / f"{DAY}-late.ndjson"
    late.write_bytes(GOOD)
    app, info = site.app, site.app.store.stat(str(late))
    file = ManifestFile(uri=str(late), etag=info.etag)
    app.claims.claim([claim_key(file)], "of-another-planner", now=app.clock.now(), lease_seconds=300)
    return [dry, first, site.json("plan", raw)[0]]


def statuses(site: Site, _: pytest.MonkeyPatch) -> Documents:
    found = [site.json("status")[0]]
    quarantined(site)
    app = site.app
    with app.heartbeat:
        found.append(site.json("status")[0])
    unread = replace(SCENES["behind"].backlog, input_bytes=None)
    old = replace(SCENES["idle"], recent=(COMMITS[0].model_copy(update=OLDER),), backlog=unread)
    found += [json.loads(_printed(status.document(scene))) for scene in (*SCENES.values(), old)]
    found.append(json.loads(_printed(failure("the store is away", COMMITS[0].decided_at))))
    return found


def _printed(document: dict[str, Any]) -> bytes:
    return orjson.dumps(document, default=output._plain, option=output._JSON_OPTIONS)


def verifications(site: Site, _: pytest.MonkeyPatch) -> Documents:
    quarantined(site)
    fine = site.json("verify")[0]
    [path] = (site.root / "o").rglob("*.parquet")
    path.unlink()
    return [fine, site.json("verify")[0], site.json("verify", "--deep")[0]]


def traces(site: Site, _monkeypatch: pytest.MonkeyPatch) -> Documents:
    flawed, good = site.raw(f"{DAY}-flawed.ndjson"), site.raw(f"{DAY}-good.ndjson")
    found = [site.json("trace", flawed)[0]]
    manifest_id = site.plan()
    for _ in range(4):  # so often, and then it is seen that it was tried often enough
        site.app.batch_runner(FailingEngine()).run([site.app.layout.manifest(manifest_id)])
    letter = quarantined_twice(site)
    found += [
        site.json("trace", each)[0] for each in (flawed, good, letter, *map(str, (site.root / "o").rglob("*.p*")))
    ]
    found.append(site.json("trace", "other")[0])
    return found


def quarantined_twice(site: Site) -> str:
    """What failed is put back, one of its files is gone by then, and what is left of it is put back again."""
    [letter] = [each["manifest_id"] for each in site.json("verify")[0]["dead_letter_manifests"]]
    site.call("redrive", "manifests", letter)
    Path(site.raw(f"{DAY}-good.ndjson")).unlink()
    site.compact()
    site.call("redrive", "rejects", f"{letter}-r1")
    return str(letter)


def redrives(site: Site, _: pytest.MonkeyPatch) -> Documents:
    manifest_id = quarantined(site)
    (site.root / "raw" / f"{DAY}-good.ndjson").write_bytes(GOOD)
    found = [site.json("redrive", "files", "--dry-run")[0], site.json("redrive", "manifests", "--dry-run")[0]]
    found.append(site.json("redrive", "rejects", manifest_id, "broken")[0])
    for path in (site.root / "m").glob("*-r*.json"):
        path.unlink()
    found.append(site.json("redrive", "rejects")[0])
    return found


def schemas(site: Site, _: pytest.MonkeyPatch) -> Documents:
    declared = site.root / "schema.toml"
    declared.write_text('[[columns]]\nname = "at"\ntype = "timestamp"\nepoch = "seconds"\n')
    with site.config.open("a") as config:
        config.write(f'[schema]\nfile = "{declared}"\nmax_columns = 2\n')
    site.plan()
    site.compact()
    return [site.json("schema")[0]]


def cleanings(site: Site, _: pytest.MonkeyPatch) -> Documents:
    site.plan()
    site.compact()
    [done] = (site.root / "s" / "ledger").rglob("done.json")
    done.unlink()
    return [site.json("clean", "--archive-days", "0", "--dry-run")[0]]


def costs(site: Site, _: pytest.MonkeyPatch) -> Documents:
    result = CliRunner().invoke(command, ["cost", "--json"], env={"COMPACTOR_CONFIG": None})
    bench = site.root / "bench.json"
    bench.write_text(
        '{"megabytes_per_second": {"spark": 172, "native": 640}, "cores": 2, "machine": "Linux x86_64",'
        ' "measured_at": "2026-11-21T10:00:00Z"}'
    )
    site.app.ledger.remember(COMMITS[0].model_copy(update={"input_bytes": 0}))
    nothing = site.json("cost")[0]
    site.app.ledger.remember(COMMITS[1])
    return [json.loads(result.stdout), nothing, site.json("cost", "--bench", str(bench))[0]]


def looks(site: Site, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """The control plane over a job, queues and topic in memory, in good times and in bad ones."""
    clock = ManualClock()
    glue, queue = MemoryGlue(clock), MemoryQueue()

    def parts(settings: Settings) -> ControlComponents:
        found = ControlComponents(settings, clock=clock, job=glue, metrics=MemoryMetrics())
        monkeypatch.setattr(found, "_queue", lambda _: queue)
        return found

    monkeypatch.setattr(control, "ControlComponents", parts)
    found = [site.json("control", "--close-breaker")[0], site.json("control", "--dry-run")[0], site.json("control")[0]]
    app = site.app
    with Heartbeat(app.store, app.layout, clock, "run", app.heartbeat._process):
        found.append(site.json("control", "--dry-run")[0])
        app.runs.ask_to_stop("run")
        found.append(site.json("control", "--dry-run")[0])
    glue.end("jr_000001", JobState.FAILED, "out of memory")
    found.append(site.json("control", "--dry-run")[0])
    with glue.trouble():
        found += [site.json("control", "--dry-run")[0], site.json("control")[0]]
    size = JobSize("G.2X", 10, "6.0")
    run = JobRun("jr", JobState.RUNNING, clock.now(), clock.now(), size=size)
    unknown = Snapshot(runs=None, heartbeats=None, backlog=None, recent=None)
    seen = Snapshot(
        runs=(run,), recent=(COMMITS[0], COMMITS[1].model_copy(update=OLDER), FULL), queue_oldest_seconds=12.5
    )
    stopping = Action(ActionKind.STOP, "it hangs", targets=("jr",))
    for snapshot in (unknown, seen):
        step = Check(snapshot, (stopping,), failed=("run jr could not be stopped",))
        found.append(json.loads(_printed(control._document(step))))
    return found


def stops(site: Site, monkeypatch: pytest.MonkeyPatch) -> Documents:
    monkeypatch.setattr(stop, "_POLL_SECONDS", 0.01)
    app = site.app
    with app.heartbeat:
        return [site.json("stop")[0], site.json("stop", "--wait", "0.01")[0]]


def compactions(site: Site, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """One folder into another by a twin of the engine: planned, interrupted, held, failed, stuck, and set aside."""
    raw, rows = str(site.root / "raw"), str(site.root / "rows")
    for path in (site.root / "raw").iterdir():
        os.utime(path, (0, 0))  # so that nobody waits for it to be written to its end
    (site.root / "raw" / "_SUCCESS").write_bytes(b"")

    def service(app: App, _: ExitStack) -> Service:
        source = ListedManifests(app.store, app.layout.manifests_folder)
        return app.service_on(PlainEngine(app.store), source)

    monkeypatch.setattr(compact, "check_java", lambda: None)
    monkeypatch.setattr(compact, "_service", service)
    words = ("compact", raw, rows, "--engine", "spark", "--json")
    found = [json.loads(CliRunner().invoke(command, [*words, *more]).stdout) for more in (["--dry-run"], [], [])]
    (site.root / "rows.compactor" / "manifests" / "torn.json").write_text("{")
    (site.root / "rows.compactor" / "manifests" / "gone.json").write_text(GONE.replace("raw", raw))
    next((site.root / "rows").rglob("*.parquet")).unlink()
    found.append(json.loads(CliRunner().invoke(command, words).stdout))
    held = Closing(
        parse_compact_paths(raw, rows),
        site.app.layout,
        Plan(skipped={"empty": 1}, held=2, held_until=COMMITS[0].decided_at),
        dry_run=False,
        is_deep=False,
        run=RunReport(failures={"m1": "it is too much"}, stuck={"m2": "a record is damaged"}),
        left=Backlog(manifests=2, begun_manifests=1, input_bytes=400),
    )
    return [*found, json.loads(_printed(held.document()))]


def checkups(site: Site, _: pytest.MonkeyPatch) -> Documents:
    """With folders that are fine, with settings that are not, and without any; no look at the machine."""
    fine = site.json("doctor", "--elsewhere")[0]
    site.config.write_text("[paths]\n")
    unset = CliRunner().invoke(command, ["doctor", "--elsewhere", "--json"], env={"COMPACTOR_CONFIG": None})
    return [fine, site.json("doctor", "--elsewhere")[0], json.loads(unset.stdout)]


def reports(site: Site, _: pytest.MonkeyPatch) -> Documents:
    """Of work that was done, of nothing, of a long day, and of a ledger that is damaged."""
    nothing = site.json("report")[0]
    quarantined(site)
    real = site.json("report")[0]
    harness = Harness()
    ReportDay(harness, files=2).fill(manifests=12)
    harness.store.put(harness.layout.outcome("2025-12-21", "m-000003"), b"{")
    day = report_on(harness)
    figures = day.figures
    older = AddedColumn("id", "string", None)
    unknown = replace(
        figures,
        dead_letters=tuple(replace(each, is_redriven=None) for each in figures.dead_letters),
        quarantined_files=(QuarantinedFile("a", "m", "missing", "no such object", WHOLE_DAY.since, None),),
        schema_changes=tuple(replace(each, added=(older,)) for each in figures.schema_changes),
    )
    made = [day.document(), replace(day, figures=unknown).document()]
    return [nothing, real, *(json.loads(_printed(each)) for each in made)]


COMMANDS: dict[str, tuple[Callable[[Site, pytest.MonkeyPatch], Documents], set[str]]] = {
    "plan": (plans, {"skipped"}),
    "status": (
        statuses,
        {f"{part}.by_reason" for part in ("rejects", "dead_letters")}
        | {"quarantined_files.by_status", "recent[].rejects", "recent[].quarantined"},
    ),
    "verify": (verifications, {"files_by_status", "rejects_by_reason"}),
    "trace": (traces, {"report.rejects", "files[].rejects", "redriven_as[].counts"}),
    "redrive": (redrives, {"redriven[].counts"}),
    "schema": (schemas, set()),
    "clean": (cleanings, {"kept"}),
    "cost": (costs, {"prices", "needed.engines", "needed.bench.bytes_per_second"}),
    "control": (looks, {"snapshot.unknown", "snapshot.recent[].rejects", "snapshot.recent[].quarantined"}),
    "stop": (stops, set()),
    "compact": (
        compactions,
        {"skipped", "run.failures", "run.stuck", "verified.files_by_status", "verified.rejects_by_reason"},
    ),
    "doctor": (checkups, set()),
    "report": (reports, {"dead_letters.by_reason", "quarantined_files.by_status"}),
}
"""For each command: what prints its documents, and the paths of objects whose keys are data."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder where nobody has run a benchmark."""
    monkeypatch.chdir(tmp_path)


def stored(name: str) -> Shape:
    found: Shape = json.loads((STORED / f"{name}.json").read_text())
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_shape(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every key and its type is the stored one: scripts go by them."""
    make, maps = COMMANDS[name]
    shape = shape_of(make(make_site(tmp_path), monkeypatch), maps)
    text = json.dumps(shape, indent=1, sort_keys=True) + "\n"
    advice = "; docs/json.md has to name each key, and CHANGELOG.md each that went or changed its meaning"
    check_stored(STORED / f"{name}.json", text, advice)
    blank = {path for path, kinds in shape.items() if kinds == "null"}
    hollow = {path for path, kinds in shape.items() if "array" in kinds and f"{path}[]" not in shape}
    hollow |= {path for path, kinds in shape.items() if "map" in kinds and f"{path}.*" not in shape}
    assert blank | hollow == set(), "seen without a value only: the test has to make a document that has one"


def documented() -> dict[str, Shape]:
    """The keys that the document names, by command."""
    found: dict[str, Shape] = {}
    for section in re.split(r"^## ", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]:
        if (name := re.match(r"`compactor (\w+)", section)) is not None:
            rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| \S[^|]* \|$", section, re.MULTILINE)
            found[name[1]] = {path: kinds.strip() for path, kinds in rows}
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_documented(name: str) -> None:
    """The document names exactly the keys that there are, each with its type and its meaning."""
    assert documented().get(name) == {
        path: kinds for path, kinds in stored(name).items() if not path.endswith("[]") or kinds != "object"
    }


def test_every_document_is_pinned() -> None:
    """Each command that takes --json has its shape stored, and its section in the document."""
    with_json = {
        name for name, each in command.commands.items() if any("--json" in option.opts for option in each.params)
    }
    assert with_json == set(COMMANDS) == {path.stem for path in STORED.glob("*.json")}
    assert set(COMMANDS) <= set(documented()) <= with_json


def test_units() -> None:
    """No key holds anything but plain units: seconds, bytes, dollars."""
    odd = re.compile(r"_(ms|millis|minutes|hours|days_ago|kb|mb|gb|megabytes)\b")
    assert [path for name in COMMANDS for path in stored(name) if odd.search(path)] == []


def test_a_changed_shape_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape that differs fails with the way to store it anew."""
    monkeypatch.delenv("UPDATE_STORED", raising=False)
    path = tmp_path / "status.json"
    path.write_text("{}\n")
    with pytest.raises(AssertionError, match="UPDATE_STORED=1 and look at the difference; docs"):
        check_stored(path, '{"new": "string"}\n', "; docs/json.md has to name each key")


def test_times_are_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    """A time in another zone would be refused by the shape; those of the clock end with a Z."""
    print_json({"as_of": SCENES["idle"].as_of})
    assert json.loads(capsys.readouterr().out) == {"as_of": "2026-01-02T03:04:05Z"}
    with pytest.raises(AssertionError, match="not in UTC"):
        shape_of([{"as_of": "2026-01-02T03:04:05+01:00"}], ())
