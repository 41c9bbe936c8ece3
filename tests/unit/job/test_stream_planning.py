"""A job that plans the streams of its settings itself."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from compactor.core.errors import StoreUnavailable
from compactor.core.logs.names import LogName
from compactor.core.logs.ports import LiveLog
from compactor.settings.settings import load_settings
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from tests.support.extras import NATIVE
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock
from tests.support.settings_files import write_settings

NATIVE.need()

OTHER = LogName("kinesis", "main", "others")
SECONDS = 60.0


def app_of(root: Path, kinesis: MemoryKinesis, log: Any = None) -> App:
    """The components of a job that plans two streams."""
    given: dict[str, Any] = {
        "input": {"allowed_prefixes": [str(STREAM), str(OTHER)]},
        "kinesis": {"sources": {"main": {}}},
        "builder": {"max_wait_seconds": 0.05},
        "stream": {"source": "listing", "trigger_interval_seconds": 0.05},
    }
    return App(load_settings(write_settings(root, **given), {}), kinesis_log=log or kinesis.log())


@pytest.fixture
def kinesis() -> MemoryKinesis:
    made = MemoryKinesis(ManualClock())
    for name in (STREAM.name, OTHER.name):
        made.create(name)
        made.put(b'{"id": 1}', name=name)
    return made


def rows(app: App) -> int:
    return operating.verifier(app).verify_all().rows


def test_run_once_plans_before_it_works(tmp_path: Path, kinesis: MemoryKinesis) -> None:
    """So all that the streams had is in the output."""
    app = app_of(tmp_path, kinesis)
    streaming.threaded_job(app, 1).run(once=True)
    assert rows(app) == 2
    seen = operating.status_reader(app).read().logs
    assert [(each.name, each.words[:10], each.is_behind) for each in seen] == [
        (str(each), "all landed", False) for each in (STREAM, OTHER)
    ]


def test_a_stream_that_is_not_there_fails_the_run_and_no_other_stream(tmp_path: Path, kinesis: MemoryKinesis) -> None:
    """The error comes once what could be done is done."""
    del kinesis.streams[OTHER.name]
    app = app_of(tmp_path, kinesis)
    with pytest.raises(Exception, match="expected an existing log"):
        streaming.threaded_job(app, 1).run(once=True)
    assert rows(app) == 1


class Hanging:
    """A log with one stream that gives no answer until it may."""

    def __init__(self, kinesis: MemoryKinesis) -> None:
        self.log, self.asked, self.answering = kinesis.log(), threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.log, name)

    def describe(self, log: LogName) -> LiveLog | None:
        if log == OTHER:
            self.asked.set()
            self.answering.wait(SECONDS)
            raise StoreUnavailable("no way to Kinesis")
        return self.log.describe(log)


@pytest.mark.parametrize("once", [False, True])
def test_a_stream_that_hangs_holds_up_nothing(tmp_path: Path, kinesis: MemoryKinesis, *, once: bool) -> None:
    """A running job plans and compacts the other one beside it, again and again, and any job can be stopped."""
    log = Hanging(kinesis)
    app = app_of(tmp_path, kinesis, log)
    job = streaming.threaded_job(app, 1)
    working = threading.Thread(target=job.run, kwargs={"once": once})
    working.start()
    assert log.asked.wait(SECONDS)
    try:
        for number in range(0 if once else 2):
            kinesis.put(b'{"id": %d}' % number)
            ends_at = time.monotonic() + SECONDS
            while rows(app) < 2 + number:
                assert time.monotonic() < ends_at
                time.sleep(0.1)
    finally:
        job.stop()
        working.join(SECONDS)
        log.answering.set()
    assert not working.is_alive()
