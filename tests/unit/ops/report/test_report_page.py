"""Promises of the page: its numbers are the figures, it needs no network, hides nothing and lets nothing break out."""

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from compactor.cli.priced_job import shape_of
from compactor.core.documents.records import FileStatus
from compactor.core.layout import ManifestKey
from compactor.core.text.formatting import duration, percent
from compactor.core.text.safe_text import Suggestions
from compactor.ops.report import page as rendering
from compactor.ops.report.page import coded, environment, page, time_labels
from compactor.ops.report.period import Period
from compactor.ops.report.report import Report, cost_of
from tests.support.harness import Harness
from tests.support.report_day import MIDNIGHT, TEN_WORKERS, ReportDay, report_on
from tests.support.report_pages import ReadPage, read_page

SHEET = Path(rendering.__file__).with_name("templates").joinpath("style.css").read_text()
HOSTILE = "\"'><script>alert(1)</script><img src=http://example.invalid/x onerror=alert(2)>&amp;\u202egnp.\x00\x1b[2J"


def on_glue(found: Report) -> Report:
    """The same as if it had run on Glue."""
    shape = shape_of(None, "native", None)
    cost = cost_of(found.figures, TEN_WORKERS, shape, is_job_named=False)
    return replace(found, state_folder="s3://lake/state", cost=cost)


@pytest.fixture(scope="module")
def report() -> Report:
    harness = Harness()
    ReportDay(harness).fill(60)
    return on_glue(report_on(harness))


@pytest.fixture(scope="module")
def shown(report: Report) -> ReadPage:
    return read_page(page(report))


def test_tables_hold_the_figures(report: Report, shown: ReadPage) -> None:
    """The tables behind the charts say what the figures are, row by row and in sum."""
    totals, buckets = report.figures.totals, report.figures.buckets
    columns = {
        "manifests": "manifests",
        "input files": "input_files",
        "input bytes": "input_bytes",
        "rows": "rows",
        "rejected lines": "rejected_lines",
        "Parquet files": "output_files",
        "Parquet bytes": "output_bytes",
    }
    for column, name in columns.items():
        assert shown.numbers("throughput", column) == [getattr(each, name) for each in buckets]
        assert shown.numbers("throughput", column, foot=True) == [getattr(totals, name)]
    account = [f"{number:,}" for number in (totals.lines, totals.rows, totals.rejected_lines, totals.blank_lines)]
    assert shown.tables["account"][1] == account
    by_bytes = report.figures.sizes
    share = percent(by_bytes.right_sized_bytes, by_bytes.size_bytes).replace(" ", "\N{NO-BREAK SPACE}")
    assert f"{share} of the output's bytes are in files within" in shown.text
    assert [row[2] for row in shown.tables["rejects"][1:]] == [f"{each.lines:,}" for each in report.figures.rejects]
    assert shown.text.index("empty-0002 no_files") < shown.text.index("broken-0001 not_json")
    assert [row[2:] for row in shown.tables["schema"][1:]] == [["1", "4", "4"], ["2", "1", "5"], ["3", "2", "7"]]
    assert report.cost is not None
    assert shown.tables["cost"][1][1:3] == ["24\N{NO-BREAK SPACE}h", f"${report.cost.compared_dollars:,.2f}"]
    assert totals.latency is not None
    times = [totals.latency.p50_seconds, totals.latency.p99_seconds, totals.latency.longest_seconds]
    in_words = [duration(each).replace(" ", "\N{NO-BREAK SPACE}") for each in times]
    assert shown.tables["arrivals"][-1] == ["all", f"{totals.latency.times:,}", *in_words]


def test_bars_are_as_high_as_their_numbers(report: Report) -> None:
    """What is drawn is to scale: bars of the throughput are to each other as their bytes are."""
    chart = re.search(r'<svg [^>]*class="[^"]*chart rates".*?</svg>', page(report), re.DOTALL)
    assert chart is not None
    drawn = re.search(r'<path d="([^"]*)" class="line reactive"', chart[0])
    assert drawn is not None
    points = [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", drawn[1])]
    base = points[0][1]
    # Between the two points on the base line, each bucket has one for its start and one for its end.
    heights = [base - y for _, y in points[1:-1]]
    assert heights[::2] == heights[1::2]
    rates = [each.input_bytes for each in report.figures.buckets]
    assert len(heights) == 2 * len(rates)
    for height, rate in zip(heights[::2], rates, strict=True):
        assert height == pytest.approx(rate / max(rates) * max(heights), abs=0.2)


def test_the_page_needs_nothing_else(report: Report, shown: ReadPage) -> None:
    """No script, no address of another place, and a policy by which a browser would refuse both."""
    assert not shown.named("script")
    for each in shown.elements:
        for name, value in each.attributes.items():
            assert not name.startswith("on")
            assert name not in {"href", "src", "action"} or str(value).startswith(("#", "data:"))
    assert "url(" not in SHEET
    assert "@import" not in SHEET
    [policy] = [each for each in shown.named("meta") if "http-equiv" in each.attributes]
    assert str(policy.attributes["content"]).startswith("default-src 'none'")
    assert len(page(report)) < 400_000


def test_charts_have_words(shown: ReadPage) -> None:
    """Each chart is an image with a label and a description, and its data is in a table."""
    ids = Counter(each.attributes["id"] for each in shown.elements if "id" in each.attributes)
    assert max(ids.values()) == 1
    drawn = [each for each in shown.named("svg") if "chart" in str(each.attributes.get("class"))]
    assert len(drawn) == len(shown.named("svg")) == 3
    for each in drawn:
        assert each.attributes["role"] == "img"
        assert each.attributes["aria-label"]
        assert ids[each.attributes["aria-describedby"]] == 1
    assert {"throughput", "durations", "arrivals", "rejects", "schema", "cost"} <= set(shown.tables)
    for each in shown.named("a"):
        assert str(each.attributes["href"]).removeprefix("#") in ids


def test_the_page_is_valid_xml(shown: ReadPage) -> None:
    """Every element that begins ends; what can be moved sideways can be reached by keyboard, and has a name."""
    assert shown.is_balanced
    for each in shown.named("div"):
        if each.attributes.get("class") == "scroll":
            assert each.attributes["tabindex"] == "0"
            assert each.attributes["aria-label"]


def test_hostile_names_stay_text() -> None:
    """Names of files, manifests, reasons and columns are untrusted, as are lines: they appear as text only."""
    harness = Harness()
    day = ReportDay(harness, files=2)
    commit = day.commit("m", 5, wait_seconds=10, load=1, bad=1, uri="s3://lake/raw/{id}-{number}" + HOSTILE[:-5])
    files = [
        commit.files[0].model_copy(update={"rejects": {HOSTILE[:-5]: 7, "invalid_json": 1}}),
        commit.files[1].model_copy(update={"status": FileStatus.MISSING, "detail": HOSTILE}),
    ]
    harness.store.put(
        harness.layout.outcome(ManifestKey(commit.date, "m")),
        commit.model_copy(update={"files": files}).model_dump_json().encode(),
    )
    day.dead_letter("bad", 6, HOSTILE, HOSTILE)
    day._columns([HOSTILE], at=7)
    text = page(report_on(harness))
    shown = read_page(text)
    assert shown.is_balanced
    assert "<script>alert(1)</script>" in shown.text
    assert not shown.named("script")
    assert not shown.named("img")
    assert not [each for each in shown.elements if "onerror" in each.attributes]
    assert not set(text) & {"\x00", "\x1b", "\u202e"}


def test_invisible_characters_are_shown() -> None:
    """Characters that are invisible, or that turn text around, are written as escapes; code is escaped as well."""
    assert coded("run `a <b>` & \u202e") == "run <code>a &lt;b&gt;</code> &amp; \\u202e"


def test_a_page_of_nothing() -> None:
    """A period without work has a page that says so, draws nothing, and has no section without content."""
    shown = read_page(page(report_on(Harness())))
    assert "No work in this period" in shown.text
    assert [each.attributes["id"] for each in shown.named("section")] == [
        "verdict",
        "account",
    ]
    assert shown.is_balanced


def test_a_page_of_one_manifest() -> None:
    """One manifest is too little for a chart: every section says its figure in words, and none sounds an alarm."""
    harness = Harness()
    ReportDay(harness, files=1).commit("only", 5, wait_seconds=10, load=0.01, bad=0)
    shown = read_page(page(report_on(harness)))
    assert not shown.named("svg")
    words = " ".join(shown.text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "The only manifest took" in words
    assert "The SLA is 15 min for 99 % of the files: met." in words
    assert set(shown.tables) == {"account"}
    assert {each.attributes["id"] for each in shown.named("section")} == {
        *("verdict", "account", "throughput", "durations", "arrivals")
    }
    assert "NaN" not in words
    assert "$" not in words


def test_prices_of_little_work() -> None:
    """What ten workers cost around the clock says nothing about 2 MB, and neither does a price per terabyte."""
    harness = Harness()
    ReportDay(harness, files=1).commit("only", 5, wait_seconds=10, load=0.01, bad=0)
    found = on_glue(report_on(harness))
    shown = read_page(page(found))
    assert found.cost is not None
    assert f"${found.cost.compared_dollars:,.2f}" not in shown.text
    assert shown.tables["cost"][0] == ["workers", "time", "price"]
    assert len(shown.tables["cost"]) == 2


@pytest.mark.parametrize(
    ("hours", "suggest", "expected"),
    [
        (24, Suggestions(), "compactor cost actual --days 1 lists"),
        (60, Suggestions(stream="web"), "compactor cost actual --stream web --days 2.5 lists"),
        (12, Suggestions("rows"), "compactor cost actual rows --days 0.5 lists"),
    ],
)
def test_command_that_lists_the_services(report: Report, hours: int, suggest: Suggestions, expected: str) -> None:
    """It reads as many days as the report, of the same stream or folder."""
    figures = replace(report.figures, period=Period(MIDNIGHT, MIDNIGHT + timedelta(hours=hours)))
    assert expected in read_page(page(on_glue(replace(report, figures=figures, suggest=suggest)))).text


def test_limits_are_drawn(report: Report) -> None:
    """A limit in sight is a line at its height, whether the times are above or below it."""
    text = page(report)
    for name, limit in (("durations", "half the SLA, 7"), ("arrivals", "SLA, 15")):
        section = text.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        assert f'<li class="limit {name}">{limit}\N{NO-BREAK SPACE}min' in section
        [path] = re.findall(r'serie-2 color-2"><path d="([^"]*)"', section)
        (_, start), (_, end) = re.findall(r"([\d.]+) ([\d.]+)", path)
        assert start == end
        tops = [float(each) for each in re.findall(r'd="M0.0 ([\d.]+) h', section)]
        assert 0 <= float(start) < max(tops)


def test_the_busiest_interval() -> None:
    """The busiest piece of the period is named by its ends, however oddly the period cuts it."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number in range(5):
        day.commit(f"m{number}", 5.1 + number / 2, wait_seconds=10, load=1 if number == 0 else 0.1, bad=0)
    since = MIDNIGHT + timedelta(hours=4, minutes=48, seconds=19)
    shown = read_page(page(report_on(harness, Period(since, since + timedelta(hours=24)))))
    assert "in the busiest interval, 2025-12-21 04:48:19 to 05:30 UTC" in shown.text


@pytest.mark.parametrize("hours", [0.01, 1, 24 * 40, 24 * 366 * 12], ids=str)
def test_pages_of_any_period(hours: float) -> None:
    """However short or long a period is, a page with charts comes of it."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number in range(5):
        day.commit(f"m{number}", 5 - hours * (1 - number / 5), wait_seconds=10, load=0.1)
    end = MIDNIGHT + timedelta(hours=5)
    text = page(report_on(harness, Period(end - timedelta(hours=hours), end)))
    assert sum(read_page(text).numbers("throughput", "manifests")) == 5
    assert text.count("<svg") == 3
    assert "nan" not in text.lower().partition("<main")[2]


def test_a_page_of_empty_files() -> None:
    """Manifests of files without a line in them are drawn as nothing, not as an error."""
    harness = Harness()
    day = ReportDay(harness, files=1)
    for number in range(5):
        day.commit(f"m{number}", 5 + number, wait_seconds=0, load=0)
    text = page(report_on(harness))
    assert "<svg" in text
    assert read_page(text).is_balanced


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


READ = [
    *((ink, ground) for ink in ("text", "muted", "accent", "limit", "good") for ground in ("card", "page")),
    ("text", "track"),
]


@pytest.mark.parametrize("number", [0, 1], ids=["light", "dark"])
def test_contrast(number: int) -> None:
    """All that is read stands out by 4.5 at least, marks of charts by 3 (WCAG 2, 1.4.3 and 1.4.11)."""
    roots = [each for each in re.findall(r":root \{(.*?)\}", SHEET, re.DOTALL) if "--page" in each]
    assert len(roots) == 2
    palette = dict(re.findall(r"--(\w+): (#\w{6});", roots[number]))
    for ink, ground in READ:
        assert contrast(palette[ink], palette[ground]) >= 4.5, f"{ink} on {ground}"
    for mark in ("bar", "second", "accent", "limit", "good"):
        assert contrast(palette[mark], palette["card"]) >= 3, mark


@pytest.mark.parametrize("hours", [0.001, 0.5, 5, 24, 24 * 8, 24 * 90, 24 * 3000])
def test_ticks_of_time(hours: float) -> None:
    """Ticks of time are in the period, in order, and no more than there is room for."""
    period = Period(MIDNIGHT + timedelta(minutes=7), MIDNIGHT + timedelta(minutes=7, hours=hours))
    ticks = time_labels(period, 6)
    assert len(ticks) <= 7
    assert all(period.holds(moment) for moment, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_more_versions_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the newest schema versions are shown, their number is not told as that of the period."""
    monkeypatch.setattr("compactor.ops.report.reader.SHOWN_VERSIONS", 2)
    monkeypatch.setitem(environment.globals, "SHOWN_VERSIONS", 2)
    harness = Harness()
    day = ReportDay(harness)
    for hour in range(3):
        day._columns([f"key_{hour}"], at=hour)
    shown = read_page(page(report_on(harness)))
    assert [row[2] for row in shown.tables["schema"][1:]] == ["2", "3"]
    assert (
        "The newest 2 schema versions of this period, which are all that this page shows, added 2 columns."
        in shown.text
    )
