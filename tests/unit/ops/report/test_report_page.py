"""Promises of the page: its numbers are the figures, it needs nobody, it hides nothing, and nothing can break out."""

import re
from collections import Counter
from datetime import timedelta

import pytest

from compactor.core.manifest_key import ManifestKey
from compactor.core.records import FileStatus
from compactor.ops.report.markup import Markup, element, visible
from compactor.ops.report.page import page
from compactor.ops.report.period import Period
from compactor.ops.report.report import Report
from compactor.ops.report.scales import count_axis, number_axis, rate_axis, seconds_axis, time_ticks
from compactor.ops.report.style import DARK, LIGHT, SHEET
from tests.support.harness import Harness
from tests.support.report_day import MIDNIGHT, ReportDay, report_on
from tests.support.report_pages import ReadPage, read_page

HOSTILE = "\"'><script>alert(1)</script><img src=http://example.invalid/x onerror=alert(2)>&amp;\u202egnp.\x00\x1b[2J"


@pytest.fixture(scope="module")
def report() -> Report:
    harness = Harness()
    ReportDay(harness).fill(60)
    return report_on(harness)


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
    assert sum(shown.numbers("sizes", "could be sized")) == report.figures.sizes.counted
    assert [row[2] for row in shown.tables["rejects"][1:]] == [f"{each.lines:,}" for each in report.figures.rejects]
    assert [row[0] for row in shown.tables["dead-letters"][1:]] == ["empty-0002", "broken-0001"]
    assert [row[2:] for row in shown.tables["schema"][1:]] == [["1", "4", "4"], ["2", "1", "5"], ["3", "2", "7"]]
    assert shown.tables["cost"][1][1:3] == ["24.00", f"{report.spending.classic_dollars:,.2f}"]
    assert totals.arrivals is not None
    times = [totals.arrivals.p50_seconds, totals.arrivals.p99_seconds, totals.arrivals.longest_seconds]
    assert shown.tables["arrivals"][-1] == ["all", f"{totals.arrivals.values:,}", *(f"{each:,.1f}" for each in times)]


def test_bars_are_as_high_as_their_numbers(report: Report) -> None:
    """What is drawn is to scale: bars of the throughput are to each other as their bytes are."""
    chart = re.search(r'<svg class="chart wide".*?Bytes in and out over time.*?</svg>', page(report), re.DOTALL)
    assert chart is not None
    heights = [float(each) for each in re.findall(r'<rect class="in"[^>]* height="([\d.]+)"', chart[0])]
    rates = [each.input_bytes for each in report.figures.buckets if each.input_bytes]
    assert len(heights) == len(rates)
    for height, rate in zip(heights, rates, strict=True):
        assert height == pytest.approx(max(1.5, rate / max(rates) * max(heights)), abs=0.2)


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
    """Each chart is an image with title and description, in two sizes, and its data is in a table."""
    ids = Counter(each.attributes["id"] for each in shown.elements if "id" in each.attributes)
    assert max(ids.values()) == 1
    charts = [each for each in shown.named("svg") if "chart" in str(each.attributes.get("class"))]
    assert len(charts) == 14
    for each in charts:
        assert each.attributes["role"] == "img"
        assert ids[each.attributes["aria-labelledby"]] == ids[each.attributes["aria-describedby"]] == 1
    assert {"throughput", "durations", "arrivals", "sizes", "rejects", "schema", "cost"} <= set(shown.tables)
    for each in shown.named("a"):
        assert str(each.attributes["href"]).removeprefix("#") in ids


def test_the_page_is_well_formed(shown: ReadPage) -> None:
    """Every element that begins ends; what can be moved sideways can be reached by keyboard, and has a name."""
    assert shown.is_balanced
    for each in shown.named("div"):
        if each.attributes.get("class") == "scroll":
            assert each.attributes["tabindex"] == "0"
            assert each.attributes["aria-label"]


def test_hostile_names_stay_text() -> None:
    """Names of files, manifests, reasons, columns and lines of anybody's choice appear as text and do nothing."""
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


def test_markup_is_escaped_by_whoever_makes_it() -> None:
    """Text becomes markup by `element` alone; what is markup already stays so."""
    assert element("p", "<b>", Markup("<i>"), title='"x"') == '<p title="&quot;x&quot;">&lt;b&gt;<i></p>'
    assert element("rect", x=1.26, y=2.0, stroke_width=3, class_="a", hidden=True, lang=None) == (
        '<rect x="1.3" y="2" stroke-width="3" class="a" hidden></rect>'
    )
    assert visible("a\x00b\u202ec\udc80\U000e0001") == "a\\x00b\\u202ec\\udc80\\U000e0001"
    assert visible("Köln 日本 😀") == "Köln 日本 😀"


def test_a_page_of_nothing() -> None:
    """A period without work has a page that says so and draws nothing."""
    shown = read_page(page(report_on(Harness())))
    assert "Nothing was done in this period" in shown.text
    assert [each.attributes["id"] for each in shown.named("section")] == [
        "verdict",
        "account",
        "set-aside",
        "schema",
        "cost",
    ]
    assert shown.is_balanced


def test_a_page_of_one_manifest() -> None:
    """One manifest with one file is enough for every section."""
    harness = Harness()
    ReportDay(harness, files=1).commit("only", 5, wait_seconds=10, load=0.1, bad=0)
    shown = read_page(page(report_on(harness)))
    assert "The only manifest took" in shown.text
    assert "No manifest held enough to fill a file" in shown.text
    assert sum(shown.numbers("throughput", "manifests")) == 1
    assert "NaN" not in shown.text


@pytest.mark.parametrize("hours", [0.01, 1, 24 * 40, 24 * 366 * 12], ids=str)
def test_pages_of_any_period(hours: float) -> None:
    """However short or long a period is, a page comes of it."""
    harness = Harness()
    ReportDay(harness, files=1).commit("only", 5, wait_seconds=10, load=0.1)
    end = MIDNIGHT + timedelta(hours=5, seconds=1)
    assert (
        sum(
            read_page(page(report_on(harness, Period(end - timedelta(hours=hours), end)))).numbers(
                "throughput", "manifests"
            )
        )
        == 1
    )


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
    *(("text", "track"), ("good", "band")),
]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(palette: dict[str, str]) -> None:
    """All that is read stands out by 4.5 at least, marks of charts by 3 (WCAG 2, 1.4.3 and 1.4.11)."""
    for ink, ground in READ:
        assert contrast(palette[ink], palette[ground]) >= 4.5, f"{ink} on {ground}"
    for mark in ("bar", "second", "accent", "limit"):
        assert contrast(palette[mark], palette["card"]) >= 3, mark


@pytest.mark.parametrize("highest", [0.0, 0.3, 1.0, 3.9, 7.0, 59.0, 61.0, 450.0, 5000.0, 90_000.0, 1e8])
def test_axes(highest: float) -> None:
    """Axes begin at 0, hold the highest value, have few ticks at even steps, and no label twice."""
    counted = int(highest)
    axes = [(make(highest), highest) for make in (seconds_axis, rate_axis, lambda value: number_axis(value, "x"))]
    for axis, value in [*axes, (count_axis(counted, "x"), counted)]:
        assert axis.ticks[0] == 0
        assert axis.top >= value * (1 - 1e-6)
        assert 2 <= len(axis.ticks) <= 6
        assert len(set(axis.labels)) == len(axis.labels)
        steps = {round(after - before, 6) for before, after in zip(axis.ticks, axis.ticks[1:], strict=False)}
        assert max(steps) - min(steps) < 1e-3 * max(steps)


@pytest.mark.parametrize("hours", [0.001, 0.5, 5, 24, 24 * 8, 24 * 90, 24 * 3000])
def test_ticks_of_time(hours: float) -> None:
    """Ticks of time are in the period, in order, and no more than there is room for."""
    period = Period(MIDNIGHT + timedelta(minutes=7), MIDNIGHT + timedelta(minutes=7, hours=hours))
    for room in (4, 8):
        ticks = time_ticks(period, room)
        assert len(ticks) <= room + 1
        assert all(period.holds(moment) for moment, _ in ticks)
        assert len({label for _, label in ticks}) == len(ticks)


def test_more_versions_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the newest schema versions are shown, their number is not told as that of the period."""
    monkeypatch.setattr("compactor.ops.report.schema_changes.SHOWN_VERSIONS", 2)
    monkeypatch.setattr("compactor.ops.report.section_schema.SHOWN_VERSIONS", 2)
    harness = Harness()
    day = ReportDay(harness)
    for hour in range(3):
        day._columns([f"key_{hour}"], at=hour)
    shown = read_page(page(report_on(harness)))
    assert [row[2] for row in shown.tables["schema"][1:]] == ["2", "3"]
    assert (
        "The newest 2 schema versions of this period, which are all that is shown here, added 2 columns." in shown.text
    )
