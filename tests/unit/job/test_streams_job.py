"""One job for several streams: exact for each, and a stream that fails holds up none of the others."""

import threading
from typing import Any

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.core.errors import AccessError, EngineLost, SettingsError
from compactor.core.layout import is_within
from compactor.core.ports import ObjectStore
from compactor.engines.engine import StageRequest
from compactor.job.streams_job import StreamsJob
from compactor.wiring import operating, spark, streaming
from compactor.wiring.app import App
from compactor.wiring.engine_choice import converts_on_spark
from compactor.wiring.opening import spark_session
from tests.support.fakes import PlainEngine
from tests.support.logged import events_logged
from tests.support.s3_messages import notification
from tests.support.streams import StreamsInMemory, stream_settings

LINES = b'{"id": 1}\n\n{"id": 2}\nno json\n'


def fill(streams: StreamsInMemory, *names: str, files: range = range(3), lines: bytes = LINES) -> None:
    """Announce files of each stream, and seal them."""
    keys = [f"raw/{name}/{number}.ndjson" for name in names for number in files]
    for key in keys:
        streams.store.put(f"s3://lake/{key}", lines)
    etags = {info.uri: info.etag for info in streams.store.list("s3://lake/raw/")}
    streams.build(*(notification("lake", key, len(lines), etags[f"s3://lake/{key}"]) for key in keys))
    for name in names:
        streams.seal(name, after_seconds=200)


class BrokenEngine(PlainEngine):
    """Fails as if its worker were forbidden to read, or as if it were gone."""

    def __init__(self, store: ObjectStore, error: Exception) -> None:
        super().__init__(store)
        self.error = error

    def stage(self, request: StageRequest) -> Any:  # noqa: ARG002 - part of the port
        raise self.error


def job(streams: StreamsInMemory, broken: dict[str, Exception] | None = None) -> StreamsJob:
    app = App(streams.settings, clock=streams.clock, store=streams.store, table_of_claims=streams.claims)

    def service(of: App) -> Any:
        name = of.settings.name
        engine = BrokenEngine(streams.store, broken[name]) if broken and name in broken else PlainEngine(streams.store)
        return streaming.service_on(
            of, engine, ListedManifests(streams.store, of.layout.manifests_folder, poll_seconds=0.01)
        )

    return streaming.streams_job(app, service)


def app_of(streams: StreamsInMemory, name: str) -> App:
    return App(streams.settings.of_stream(name), clock=streams.clock, store=streams.store)


def test_each_stream_has_its_own_output_ledger_and_schema() -> None:
    """The totals of the streams add up to that of the job, and no object of one is among those of another."""
    names = ("orders", "clicks", "views")
    streams = StreamsInMemory(stream_settings(*names, stream={"manifests_in_flight": 2}))
    fill(streams, *names)
    fill(streams, "clicks", files=range(3, 8), lines=b'{"page": "x"}\n')
    report = job(streams).run(once=True)
    verified = {name: operating.verifier(app_of(streams, name)).verify_all() for name in names}
    assert {name: (each.rows, each.rejected_lines) for name, each in verified.items()} == {
        "orders": (6, 3),
        "clicks": (11, 3),
        "views": (6, 3),
    }
    assert report.records == sum(each.rows for each in verified.values())
    assert not any(each.discrepancies for each in verified.values())
    columns = {name: {each.name for each in app_of(streams, name).registry.latest().columns} for name in names}
    assert ("page" in columns["clicks"], "page" in columns["orders"]) == (True, False)


def test_a_stream_that_fails_holds_up_no_other() -> None:
    """What a person must act on ends the work on one stream, is logged, and is raised once the others are done."""
    streams = StreamsInMemory(stream_settings("orders", "clicks"))
    fill(streams, "orders", "clicks")
    with events_logged("stream.failed") as failed, pytest.raises(AccessError):
        job(streams, {"orders": AccessError("s3://lake/output/orders: denied")}).run(once=True)
    assert [each["stream"] for each in failed] == ["orders"]
    assert operating.verifier(app_of(streams, "clicks")).verify_all().rows == 6
    assert job(streams).run(once=True).records == 6


def test_a_lost_engine_ends_all() -> None:
    """The engine is common to all streams: without it the process ends, and another one goes on."""
    streams = StreamsInMemory(stream_settings("orders", "clicks"))
    fill(streams, "orders", "clicks")
    with pytest.raises(EngineLost):
        job(streams, {"orders": EngineLost("the JVM is gone")}).run(once=False)
    assert job(streams).run(once=True).records in {6, 12}


def test_a_stream_is_tried_again_until_the_job_is_stopped() -> None:
    """A run without end starts a failed stream again after a pause, and ends when it is asked to, in any state."""
    streams = StreamsInMemory(stream_settings("orders", "clicks"))
    fill(streams, "orders", "clicks")
    error = AccessError("s3://lake/output/orders: denied")
    broken: dict[str, Exception] = {"orders": error}
    made = job(streams, broken)
    made.first_pause_seconds = 0.01
    done = threading.Event()
    folder = streams.settings.of_stream("orders").paths.output
    with events_logged("stream.failed") as failed:
        thread = threading.Thread(target=lambda: (made.run(once=False), done.set()))
        thread.start()
        threading.Timer(0.3, broken.clear).start()
        for _ in range(500):
            if any(is_within(info.uri, folder) for info in streams.store.list("s3://lake/output/")):
                break
            done.wait(0.02)
        made.stop()
        assert done.wait(10)
        thread.join()
    assert len(failed) >= 1
    assert operating.verifier(app_of(streams, "orders")).verify_all().rows == 6


def test_a_job_whose_streams_all_fail_ends() -> None:
    """The control plane starts it again, and opens its breaker if that does not help."""
    streams = StreamsInMemory(stream_settings("orders", "clicks"))
    fill(streams, "orders", "clicks")
    with pytest.raises(AccessError):
        job(streams, {name: AccessError("denied") for name in ("orders", "clicks")}).run(once=False)


def test_the_job_needs_a_stream_to_share_it() -> None:
    """Where each stream has its own job, there is nothing for a common one."""
    entry = {"name": "orders", "job": "own", "input": {"allowed_prefixes": ["s3://lake/raw/orders"]}}
    with pytest.raises(SettingsError, match="expected one of orders"):
        streaming.threaded_job(App(stream_settings(entry)), 2)


def test_work_from_before_there_were_streams_is_told() -> None:
    """Manifests at the top of the watched prefix are in no stream; the log says how to finish them."""
    streams = StreamsInMemory(stream_settings("orders", stream={"source": "listing"}))
    streams.store.put("s3://lake/manifests/m1.json", b"{}")
    streams.store.put("s3://lake/manifests/orders/m2.json", b"{}")
    app = App(streams.settings, clock=streams.clock, store=streams.store, table_of_claims=streams.claims)
    with events_logged("manifests.of_no_stream") as told:
        streaming.threaded_job(app, 1)
    assert told == [{"objects": 1, "first": "s3://lake/manifests/m1.json"}]


@pytest.mark.parametrize("engine", ["native", "spark"])
def test_spark_converts_rows_if_one_stream_says_so(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All streams share it: the engine at the top is that of those that name none."""
    entry = {"name": "own", "input": {"allowed_prefixes": ["s3://lake/raw/own"]}, "convert": {"engine": engine}}
    app = App(stream_settings("orders", entry, convert={"engine": "native"}))
    assert converts_on_spark(app.settings) is (engine == "spark")
    monkeypatch.setattr(spark, "opened", lambda _settings, *, converts_rows: converts_rows)
    assert spark_session(app) is (engine == "spark")
