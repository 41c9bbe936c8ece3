"""The benchmark of streams: what producers deliver, and when a flood costs the others too much."""

import dataclasses
import json
import threading
from pathlib import Path

import pytest

pytest.importorskip("psutil")

from click.testing import CliRunner

from bench.streams.__main__ import main
from bench.streams.report import OTHERS, costs, faults, fields, figures, produced, slow, together
from bench.streams.run import CALM, FLOOD, Result, Totals, measured, settings_at
from bench.streams.traffic import FLOODING, LEAST_WAITING, LINES, STREAMS, Delivery, Load, Traffic
from compactor.core.documents.manifest import Manifest
from compactor.core.layout import ManifestKey
from compactor.settings.settings import parse_settings
from compactor.wiring.app import App

LOAD = Load(seconds=0.2, every_seconds=0.1, flood=5)


@pytest.fixture
def apps(tmp_path: Path) -> dict[str, App]:
    settings = parse_settings(settings_at(tmp_path, {}))
    return {name: App(settings.of_stream(name)) for name in STREAMS}


def test_each_producer_delivers_at_its_rate_and_one_floods(apps: dict[str, App], tmp_path: Path) -> None:
    """Two manifests of each stream in each phase, of files with the lines that are counted, and many of a flood."""
    traffic = Traffic(apps, tmp_path)
    traffic.run(CALM, LOAD, floods=False)
    traffic.run(FLOOD, LOAD, floods=True)
    for name, app in apps.items():
        delivered = [each for each in traffic.delivered if each.stream == name]
        counts = [sum(each.phase == phase for each in delivered) for phase in (CALM, FLOOD)]
        assert counts[0] == 2
        assert counts[1] >= 5 if name == FLOODING else counts[1] == 2
        uris = [info.uri for info in app.store.list(app.layout.manifests_folder)]
        assert len(uris) == len(delivered)
        manifest = Manifest.model_validate_json(app.store.read(uris[0]))
        assert app.store.read(manifest.files[0].uri).count(b"\n") == delivered[0].lines == LINES[name]
        assert manifest.files[0].size_bytes == delivered[0].size_bytes


def test_a_flood_comes_again_while_few_manifests_wait(apps: dict[str, App], tmp_path: Path) -> None:
    """It lasts until it is told to end, however fast the job is."""
    producer, ended, looks = Traffic(apps, tmp_path)._producers[0], threading.Event(), []

    class Waits(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - part of the event
            looks.append(len(producer.delivered))
            if len(looks) == 2:
                for info in list(producer.app.store.list(producer.app.layout.manifests_folder))[:10]:
                    producer.app.store.delete([info.uri])
            if len(looks) == 3:
                self.set()
            return self.is_set()

    ended = Waits()
    producer.flood(FLOOD, LEAST_WAITING + 5, ended)
    assert looks == [LEAST_WAITING + 5, LEAST_WAITING + 5, 2 * (LEAST_WAITING + 5)]


def result_of(flood_seconds: float = 14.0) -> Result:
    """Twenty manifests of each stream in each phase, which took 10 s, and longer beside the flood."""
    deliveries = tuple(
        Delivery(name, phase, ManifestKey("2026-01-02", f"{phase}-{number}"), 0.0, LINES[name], 1000)
        for name in STREAMS
        for phase in (CALM, FLOOD)
        for number in range(20)
    )
    seconds = {each: 10.0 if each.phase == CALM else flood_seconds for each in deliveries}
    totals = {name: Totals(40, 40 * (LINES[name] - 1), 40) for name in STREAMS}
    return Result(deliveries, seconds, {CALM: 0.4, FLOOD: 1.9}, 3.0, totals, totals, totals, 0)


def test_what_adds_up_and_is_fast_enough_has_no_fault() -> None:
    result = result_of()
    assert [*faults(result), *slow(result)] == []
    assert produced(result) == result.verified
    assert [(each.stream, each.manifests, each.ratio) for each in costs(result)] == [(name, 20, 1.4) for name in OTHERS]
    assert together(result).manifests == 180
    assert dict(fields(result))["held"] == "yes"
    found = json.loads(json.dumps(figures(result)))
    assert found["faults"] == []
    assert (found["streams"]["kind-1"]["calm_p99_seconds"], found["streams"]["kind-1"]["ratio"]) == (10, 1.4)


def test_a_stream_of_which_nothing_is_done_is_told() -> None:
    """The figures leave it out, and the fault says so."""
    result = result_of()
    lost = {each: seconds for each, seconds in result.seconds.items() if each.stream != "kind-3"}
    shown = dict(fields(dataclasses.replace(result, seconds=lost)))["held"]
    assert shown[:2] == ["no", "40 of 400 manifests are not done, such as calm-0"]


def test_a_phase_needs_time_for_a_manifest() -> None:
    refused = CliRunner().invoke(main, ["--seconds", "2", "--every-seconds", "3"])
    assert (refused.exit_code, "--every-seconds" in refused.stderr) == (2, True)


def test_one_stream_that_waits_too_long_is_told() -> None:
    """The limit is for each stream; that the others are fast makes up for nothing."""
    result = result_of()
    slowed = next(each for each in result.deliveries if (each.stream, each.phase) == ("kind-3", FLOOD))
    late = dataclasses.replace(result, seconds={**result.seconds, slowed: 15.1})
    assert [*slow(late)] == ["kind-3: p99 1.51 times as long, expected 1.5 times at most"]
    assert dict(fields(late))["held"] == ["no", *slow(late)]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _: {"discrepancies": 2}, "verify found 2 discrepancies"),
        (lambda result: {"seconds": dict(list(result.seconds.items())[1:])}, "1 of 400 manifests are not done"),
        (lambda result: {"verified": {**result.verified, "kind-2": Totals(40, 1, 40)}}, "kind-2: verify found Totals"),
        (lambda _: {"reported": {}}, "kind-0: report found None"),
        (lambda result: {"measured": {**result.measured, "kind-9": Totals()}}, "kind-9: the metrics found Totals"),
    ],
)
def test_what_does_not_add_up_is_told(change, told: str) -> None:
    result = result_of()
    assert next(faults(dataclasses.replace(result, **change(result)))).startswith(told)


def test_metrics_add_up_by_stream() -> None:
    """Only what the streams emit is counted, and distributions are left out."""
    values = {"ManifestsCommitted": 1, "RecordsOut": 5, "RecordsRejected": 2, "ArrivalToVisibleSeconds": {"count": 1}}
    events = [{"event": "metrics.emitted", "namespace": f"Compactor/{name}", "values": values} for name in "aab"]
    log = [*map(json.dumps, events), json.dumps({"event": "batch.finished"}), "no event"]
    assert measured(log) == {"a": Totals(2, 10, 4), "b": Totals(1, 5, 2)}
