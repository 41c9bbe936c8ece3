"""What a report says of each state of things, in words, colour and exit code: no breach that is none."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from compactor.cli.commands.report import make_report
from compactor.control.diagnosis.health import Severity
from compactor.core.documents.changes import Commit
from compactor.core.documents.records import Accepted, FileStatus
from compactor.core.layout import ManifestKey
from compactor.cost.prices import PricedJob
from compactor.ledger.sizing import with_share
from compactor.ledger.sizing_history import summarised
from compactor.ops.report.page import page
from compactor.ops.report.report import Report
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.support.harness import Harness
from tests.support.report_day import DAY, TEN_WORKERS, WHOLE_DAY, ReportDay
from tests.support.report_pages import ReadPage, read_page

DST = "/w/my rows"
DAY_SECONDS = 86_400
AMOUNT = re.compile(r"\$\s?\d")


def commits(number: int = 2, *, wait_seconds: float = 10, load: float = 0.01) -> Callable[[ReportDay], None]:
    def fill(day: ReportDay) -> None:
        for each in range(number):
            day.commit(f"m{each}", 5 + each, wait_seconds=wait_seconds, load=load, bad=0)

    return fill


def changed(**update: object) -> Callable[[ReportDay], None]:
    """One commit whose only file has another report."""

    def fill(day: ReportDay) -> None:
        commit = day.commit("m0", 5, wait_seconds=10, load=0.01, bad=0)
        files = [commit.files[0].model_copy(update=update)]
        put(day, commit.model_copy(update={"files": files}))

    return fill


def put(day: ReportDay, commit: Commit) -> None:
    uri = day.layout.outcome(ManifestKey(DAY, commit.manifest_id))
    day.harness.store.put(uri, commit.model_dump_json().encode())


def rejected(rejects: int) -> Callable[[ReportDay], None]:
    counts = {"lines": 1000, "blank_lines": 0, "rejected_lines": rejects, "records": 1000 - rejects}
    return changed(**counts, rejects={"invalid_json": rejects})


def broken(day: ReportDay) -> None:
    day.dead_letter("bad one", 6, "not_json", "no JSON")


def listed(day: ReportDay) -> None:
    """Files of a day ago, which a person plans for a job."""
    day.commit("m0", 5, wait_seconds=DAY_SECONDS, load=0.01, bad=0)
    uri = day.layout.accepted("m0")
    record = Accepted.model_validate_json(day.harness.store.read(uri))
    assert record.manifest is not None
    manifest = record.manifest.model_copy(update={"listed_at": record.manifest.created_at})
    day.harness.store.put(uri, record.model_copy(update={"manifest": manifest}).model_dump_json().encode())


def nothing(_: ReportDay) -> None:
    pass


QUARANTINED = changed(status=FileStatus.UNREADABLE, detail="truncated", lines=0, blank_lines=0, records=0)
WHOLE = "have it delivered complete under its name"
REMOVE = "or give it up: remove it"
DISMISS = f"`compactor dismiss --in '{DST}' s3://lake/raw/m0-0.ndjson --why <TEXT>`"
CORRECT = "correct /w/state/failed/bad one.json"
REDRIVE_MANIFESTS = f"`compactor redrive manifests --in '{DST}' --manifest 'bad one'`"
GIVE_UP = f"or give it up: `compactor dismiss --in '{DST}' --manifest 'bad one' --why <TEXT>`"
AGAIN = f"`compactor compact <SRC> '{DST}'`"


@dataclass
class Case:
    """A state of things, and what comes of it."""

    fill: Callable[[ReportDay], None]
    folder: str
    severity: Severity
    points: list[str]  # patterns, of all points
    word: str  # of `status`
    shown: str = ""  # a text of the page
    red: tuple[str, ...] = ()  # all texts in the colour of a breach


CASES = {
    "nothing, a job": Case(nothing, "", "nothing", [], "empty", "Check whether the job was running"),
    "nothing, a folder": Case(nothing, DST, "nothing", [], "empty", "Nothing was compacted."),
    "in time, a job": Case(commits(), "", "in_order", [], "stopped", "The SLA is 15 min for 99 % of the files: met."),
    "a folder": Case(commits(), DST, "in_order", [], "idle", "The work took"),
    "yesterday's files, a folder": Case(
        commits(wait_seconds=DAY_SECONDS), DST, "in_order", [], "idle", "2 manifests with 12 files became"
    ),
    "yesterday's files, planned for a job": Case(listed, "", "in_order", [], "stopped", "met."),
    "late, a job": Case(
        commits(wait_seconds=11_999),
        "",
        "look",
        [r"^12 of 12 files took longer than the SLA of 15 min to become visible; the slowest took . h .*, .* too long"],
        "stopped",
        "missed by",
        (r"SLA 15 min, missed by \d h", r"missed by \d h"),
    ),
    "slow, a job": Case(
        commits(wait_seconds=10, load=6.5),
        "",
        "look",
        ["^2 of 2 manifests took longer than half the SLA, 7 min 30 s; the slowest took"],
        "stopped",
        "A manifest should take less than half the SLA, 7 min 30 s: 2 took longer.",
    ),
    "some rejects, a folder": Case(
        rejected(50), DST, "look", [rf"^5.0 % of the lines .* `compactor rejects '{DST}'` shows"], "idle", "5.0 %"
    ),
    "some rejects, a job": Case(
        rejected(50), "", "look", ["^5.0 % of the lines .* `compactor rejects` shows"], "stopped", "5.0 %"
    ),
    "few rejects": Case(rejected(10), "", "in_order", [], "stopped", "1.0 %"),
    "few rows, a folder": Case(
        rejected(501),
        DST,
        "act",
        [rf"^Less than half of the lines are rows: 50.1 % .* `compactor rejects '{DST}'`"],
        "needs_you",
        "50.1 %",
    ),
    "no rows": Case(rejected(1000), "", "act", ["^No line became a row. Next: `compactor rejects` shows"], "needs_you"),
    "half of the lines": Case(rejected(500), "", "look", ["^50.0 % of the lines were rejected"], "stopped"),
    "quarantined, a folder": Case(
        QUARANTINED,
        DST,
        "act",
        [
            f"^1 input file is quarantined: 1 unreadable. Next: {WHOLE}, then {AGAIN}; {REMOVE}, or {DISMISS}.$",
        ],
        "needs_you",
        "not settled",
        ("not settled: no later version was compacted",),
    ),
    "quarantined, a job": Case(
        QUARANTINED,
        "",
        "act",
        [
            f"^1 input file is quarantined: 1 unreadable. Next: {WHOLE}, then `compactor redrive files`; or give it ",
        ],
        "needs_you",
        "not settled",
        ("not settled: no later version was compacted",),
    ),
    "a dead letter, a folder": Case(
        broken,
        DST,
        "act",
        [f"^1 manifest is a dead letter. Next: {CORRECT}, then {REDRIVE_MANIFESTS}, then {AGAIN}; {GIVE_UP}.$"],
        "needs_you",
        "not redriven",
        ("not redriven",),
    ),
}


def app_of(case: Case) -> App:
    harness = Harness()
    case.fill(ReportDay(harness))
    harness.clock.set(WHOLE_DAY.until)
    app = harness.app()
    if case.folder:
        paths = app.settings.paths.model_copy(update={"output": case.folder})
        app.settings = replace(app.settings, paths=paths, folder=case.folder)
    for key in app.ledger.manifests():
        outcome = app.ledger.outcome(key)
        if isinstance(outcome, Commit):
            app.ledger.remember(summarised(outcome, target_file_bytes=app.settings.output.target_file_bytes))
    return app


def report_of(app: App, job: PricedJob = TEN_WORKERS, *, is_job_named: bool = False) -> Report:
    return make_report(app, WHOLE_DAY, job, is_job_named=is_job_named, with_samples=False)


def words_of(shown: ReadPage) -> str:
    return " ".join(shown.text.replace("\N{NO-BREAK SPACE}", " ").split())


def red_of(text: str) -> list[str]:
    """The texts in the colour of a breach."""
    found = re.findall(r'class="(?:[^"]* )?open"[^>]*>([^<]*)<', text)
    return [" ".join(each.replace("\N{NO-BREAK SPACE}", " ").split()) for each in found]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_state(case: Case) -> None:
    """Each state has its verdict, words, colour and exit code, and no dollars of workers that did not work."""
    report = report_of(app_of(case))
    assert (report.verdict.severity, report.needs_operator) == (case.severity, case.severity == "act")
    assert len(report.verdict.points) == len(case.points), report.verdict.points
    for point, pattern in zip(report.verdict.points, case.points, strict=True):
        assert re.search(pattern, point.text), point.text
    text = page(report)
    shown = read_page(text)
    words = words_of(shown)
    assert case.shown in words
    assert f'class="verdict {case.severity}"' in text
    red = red_of(text)
    assert len(red) == len(case.red), red
    assert all(re.search(pattern, each) for pattern, each in zip(case.red, red, strict=True)), red
    assert not AMOUNT.search(words)
    assert not re.search(r"\d{3,} seconds|\d{3,}\.\d s", words)
    assert ("SLA" in words) == (not case.folder)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_status_agrees(case: Case) -> None:
    """The status of the same place has a word that fits, and says the same of sizes and of what a person has to do."""
    app = app_of(case)
    found, report = operating.status_reader(app).read(), report_of(app)
    assert (found.sizes.by_bytes or with_share(0, 0, 0)) == report.figures.sizes
    state = found.state
    assert state.word == case.word
    assert (state.severity == "act") == report.needs_operator
    if report.needs_operator:
        [point] = report.verdict.points
        assert (state.reason, state.next_move) == (point.reason, point.next_move.replace("`", ""))
    elif case.folder:
        assert state.next_move == f"{AGAIN[1:-1]}, if there is new input"


def test_named_workers_are_priced() -> None:
    """A price that the user asks for is shown, and that nothing was paid, too."""
    app = app_of(CASES["a folder"])
    words = words_of(read_page(page(report_of(app, PricedJob("G.1X", 2, "6.0"), is_job_named=True))))
    assert "That cost nothing on AWS." in words
    assert "would cost $" in words


@pytest.mark.parametrize(("points", "charts"), [(4, 0), (5, 3)])
def test_few_points_are_a_table(points: int, charts: int) -> None:
    """Under five points are a table that stands open, with one row for each."""
    case = Case(commits(points), "", "in_order", [], "stopped")
    text = page(report_of(app_of(case)))
    assert len(re.findall("<svg [^>]*chart ", text)) == charts
    rows = read_page(text).tables["throughput"]
    assert len(rows) == 2 + (points if not charts else 48)
    before = text.partition('<table id="data-throughput"')[0]
    assert (before.rfind("<details>") > before.rfind("</details>")) == bool(charts)
