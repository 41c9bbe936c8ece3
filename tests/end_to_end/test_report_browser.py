"""The page of a report in a real browser: quiet, self-sufficient, narrow enough, and usable by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor.ops.report.page import page
from compactor.ops.report.report import Report
from tests.support.browser import Browser, found_browser
from tests.support.extras import CHROMIUM
from tests.support.harness import Harness
from tests.support.report_day import ReportDay, report_on
from tests.unit.ops.report.test_report_page import HOSTILE

PROGRAM = found_browser()
pytestmark = CHROMIUM.needed


WIDER = """[...document.querySelectorAll('body *')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.right > innerWidth + 1 && !each.closest('.scroll, svg');
}).map(each => each.outerHTML.slice(0, 200)).concat(
    document.documentElement.scrollWidth > innerWidth ? ['the page'] : []
)"""
"""What is wider than the window, except within a table, which scrolls on its own."""


@pytest.fixture(scope="module")
def report() -> Report:
    """A day with all that can be shown, hostile names included."""
    harness = Harness()
    day = ReportDay(harness)
    day.fill(120)
    day.dead_letter("hostile", 12, "not_json", HOSTILE + "x" * 500)
    day.commit("long", 13, wait_seconds=60, load=1, bad=1, uri="s3://lake/" + "long-name-" * 60 + "{id}-{number}")
    return report_on(harness)


@pytest.fixture(scope="module")
def saved(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page(report))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser(str(PROGRAM)) as browser:
        yield browser


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1280, False, id="1280-light"),
        pytest.param(400, True, id="400-dark"),
        pytest.param(1280, True, id="1280-dark", marks=pytest.mark.full),
        pytest.param(400, False, id="400-light", marks=pytest.mark.full),
    ],
)
def test_page_in_a_window(browser: Browser, saved: Path, report: Report, width: int, dark: bool) -> None:
    """No complaint, no request, nothing to move sideways for, one drawing of each chart, and the numbers are there."""
    browser.open(saved, width=width, dark=dark)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.value(WIDER) == []
    shown = browser.value(
        "[...document.querySelectorAll('svg.chart')].filter(each => each.getClientRects().length).length"
    )
    assert shown == 3
    text = browser.value("document.body.innerText")
    totals = report.figures.totals
    for number in (totals.input_bytes, totals.output_bytes, totals.lines, totals.rows, totals.rejected_lines):
        assert f"{number:,}" in text
    background = browser.value("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(17, 20, 24)" if dark else "rgb(244, 245, 247)")


def test_tables_are_cards_in_a_narrow_window(browser: Browser, saved: Path) -> None:
    """No table has to be moved sideways, and each value shows its column."""
    browser.open(saved, width=400)
    browser.value("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert browser.value("[...document.querySelectorAll('.scroll')].every(each => each.scrollWidth <= 400)")
    cells = "document.querySelectorAll('tbody :is(th, td)')"
    labels = browser.value(f"[...{cells}].map(each => getComputedStyle(each, '::before').content)")
    assert len(labels) > 500
    assert all(label.strip('"') for label in labels)
    assert "none" not in labels


def test_page_of_one_manifest_has_no_chart(browser: Browser, tmp_path: Path) -> None:
    """One bucket makes no chart, no frame of one and no empty section."""
    harness = Harness()
    ReportDay(harness, files=1).commit("only", 5, wait_seconds=10, load=0.01, bad=0)
    path = tmp_path / "report.html"
    path.write_text(page(report_on(harness)))
    browser.open(path, width=400)
    assert browser.value(WIDER) == []
    assert browser.value("document.querySelectorAll('svg, .legend').length") == 0
    empty = "[...document.querySelectorAll('section, section div')].filter(each => each.getClientRects().length"
    assert browser.value(f"{empty} && !each.innerText.trim()).length") == 0


@pytest.mark.parametrize("width", [1280, 400])
def test_labels_do_not_overlap(browser: Browser, saved: Path, width: int) -> None:
    """No label of a chart lies on another one or beyond the edge."""
    browser.open(saved, width=width)
    overlaps = browser.value(
        """[...document.querySelectorAll('svg.chart')].filter(each => each.getClientRects().length).flatMap(chart => {
            const edge = chart.getBoundingClientRect();
            const labels = [...chart.querySelectorAll('text')];
            const boxes = labels.map(each => [each.textContent, each.getBoundingClientRect()]);
            const out = boxes.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1);
            const on = boxes.flatMap(([one, a], i) => boxes.slice(i + 1).filter(([, b]) =>
                a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3
            ).map(([other]) => `${one} on ${other}`));
            return [...out.map(([one]) => `${one} is cut off`), ...on];
        })"""
    )
    assert overlaps == []


def test_page_by_keyboard(browser: Browser, saved: Path) -> None:
    """Tab comes to the link past the head first, then to the sections; the focus is outlined; Enter unfolds."""
    browser.open(saved, width=1280)
    focused = "document.activeElement.textContent"
    browser.press("Tab")
    assert browser.value(focused) == "Skip to the report"
    assert browser.value("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Tab")
    assert browser.value(focused) == "Summary"
    assert browser.value("parseFloat(getComputedStyle(document.activeElement).outlineWidth)") >= 2
    for _ in range(60):
        if browser.value("document.activeElement.tagName") == "SUMMARY":
            break
        browser.press("Tab")
    assert browser.value("document.activeElement.parentElement.open") is False
    browser.press("Enter")
    assert browser.value("document.activeElement.parentElement.open") is True
    browser.press("Tab")
    assert browser.value("document.activeElement.getAttribute('role')") == "region"
    assert browser.complaints == []
