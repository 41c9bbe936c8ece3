"""Promises of `report`: where the page goes, which period it is about, and which code it ends with."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compactor.adapters.listed_manifests import ListedManifests
from compactor.cli.entry import compactor as command
from compactor.settings.settings import load_settings
from compactor.wiring import finding, streaming
from compactor.wiring.app import App
from tests.support.fakes import PlainEngine
from tests.support.report_pages import read_page
from tests.support.sampling import few
from tests.support.settings_files import write_settings

LINES = b'{"id": 1}\n{"id": 2}\n<script>alert(1)</script>\n\n'


class Place:
    """A laptop's folders, with one manifest done."""

    def __init__(self, root: Path) -> None:
        self.config = write_settings(root)
        (root / "raw").mkdir()
        (root / "raw" / "2025-12-21-a.ndjson").write_bytes(LINES)
        self.app = App(load_settings(self.config, {}))
        finding.plan(self.app, f"{root}/raw")
        self.work()

    def work(self) -> None:
        source = ListedManifests(self.app.store, self.app.layout.manifests_folder)
        streaming.service_on(
            self.app, PlainEngine(self.app.store, metadata_columns=self.app.settings.metadata_columns), source
        ).run(once=True)

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(command, ["--config", str(self.config), "report", *arguments])

    def json(self, *arguments: str) -> Any:
        return json.loads(self.call("--json", *arguments).stdout)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def test_page_of_the_last_day(place: Place) -> None:
    """Without options the last 24 hours become report.html, and the screen says where it is and how it went."""
    result = place.call()
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("report   report.html\nperiod   20")
    shown = read_page(Path("report.html").read_text())
    assert shown.tables["account"][1] == ["4", "2", "1", "1"]
    assert "<script>alert(1)</script>" in shown.text
    assert not shown.named("svg")


def test_page_on_stdout(place: Place) -> None:
    """--out - writes the page to stdout, nothing else, and no file."""
    result = place.call("--out", "-", "--no-samples")
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert "<script>alert(1)</script>" not in read_page(result.stdout).text
    assert not Path("report.html").exists()


@pytest.mark.parametrize("samples", ["--samples", "--no-samples"])
def test_no_page_through_a_link_of_others(place: Place, samples: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that a different user made leads the page nowhere; one's own links do, such as /dev/stdout."""
    Path("victim").write_text("precious")
    Path("page.html").symlink_to("victim")
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: 4711)
        patch.setattr("os.lstat", lambda _: os.stat_result((0, 0, 0, 0, 4712, 0, 0, 0, 0, 0)))
        assert place.call("--out", "page.html", samples).exit_code == 2
        if samples == "--samples":
            assert "belongs to a different user" in place.call("--out", "victim").stderr
    assert Path("victim").read_text() == "precious"
    assert place.call("--out", "page.html", samples).exit_code == 0
    assert Path("victim").read_text().startswith("<!DOCTYPE html>")


def test_figures_as_a_document(place: Place) -> None:
    """--json gives the figures and writes no page, unless --out says where."""
    document = place.json()
    assert not Path("report.html").exists()
    totals = document["totals"]
    assert (totals["manifests"], totals["rows"], totals["rejected_lines"], totals["blank_lines"]) == (1, 2, 1, 1)
    assert document["rejects"][0]["samples"][0]["head"] == "<script>alert(1)</script>"
    assert document["verdict"]["severity"] == "look"
    assert document["cost"] is None
    place.json("--out", "page.html")
    assert Path("page.html").is_file()


def test_period(place: Place) -> None:
    """--since and --until, or --hours up to --until, say which time it is about; it ends now at the latest."""
    found = place.json("--since", "2020-01-01", "--until", "2020-01-02T00:00:00+01:00")
    edges = [datetime.fromisoformat(found["period"][name]) for name in ("since", "until")]
    assert edges == [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 23, tzinfo=UTC)]
    assert found["totals"]["manifests"] == 0
    assert found["verdict"]["severity"] == "nothing"
    found = place.json("--until", "2020-01-02", "--hours", "0.5")
    assert datetime.fromisoformat(found["period"]["since"]) == datetime(2020, 1, 1, 23, 30, tzinfo=UTC)
    assert place.json("--until", "9999-01-01")["totals"]["manifests"] == 1


@pytest.mark.parametrize(
    "words",
    few(
        [
            ("--since", "2020-01-02", "--until", "2020-01-01"),
            ("--since", "9999-01-01"),
            ("--since", "yesterday"),
            ("--since", "2020-01-01", "--hours", "3"),
            ("--hours", "0"),
            ("--until", "0001-01-01T01:00:00", "--hours", "2"),
            ("--json", "--out", "-"),
            ("--out", "no/such/folder/report.html"),
            ("--workers", "1"),
        ],
        4,
    ),
    ids=" ".join,
)
def test_wrong_usage(place: Place, words: tuple[str, ...]) -> None:
    """What cannot be meant ends with code 2, and says what was expected."""
    result = place.call(*words)
    assert result.exit_code == 2, result.stdout
    assert "Error: " in result.stderr
    assert not Path("report.html").exists()


def test_named_workers(place: Place) -> None:
    """With the workers named, what they cost is told against ten of G.2X."""
    cost = place.json("--worker-type", "G.1X", "--workers", "4")["cost"]
    assert cost["is_job_named"] is True
    assert cost["dollars_elapsed"] == pytest.approx(24 * 4 * 0.308)
    assert cost["compared_dollars"] == pytest.approx(24 * 20 * 0.308)


def test_dead_letters_need_an_operator(place: Place) -> None:
    """A dead letter that was not redriven ends the command with code 3; the page is there all the same."""
    place.app.store.put(f"{place.app.layout.manifests_folder}bad.json", b"{")
    place.work()
    result = place.call()
    assert result.exit_code == 3
    assert "verdict  Action needed" in result.stdout
    assert "bad not_json: the object is not one JSON document" in read_page(Path("report.html").read_text()).text
