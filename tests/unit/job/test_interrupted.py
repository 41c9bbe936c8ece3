"""Ctrl-C in a program without a handler of its own: the run ends after what is in flight, and blames no manifest."""

from threading import Event
from typing import Any

import pytest

from compactor.core.layout import ManifestKey
from compactor.engines.engine import Staged, StageRequest
from compactor.wiring import streaming
from tests.support.fakes import ListSource, PlainEngine
from tests.support.harness import DAY, GOOD, Harness


class InterruptedEngine(PlainEngine):
    """Fails once the run was interrupted, as Spark does whose jobs end with Ctrl-C."""

    began, interrupted = Event(), Event()

    def stage(self, request: StageRequest) -> Staged:  # noqa: ARG002 - of the port
        self.began.set()
        assert self.interrupted.wait(20)
        raise RuntimeError("the job was cancelled")


def test_ctrl_c_blames_no_manifest() -> None:
    """The failure that Ctrl-C causes counts as passing, waiting manifests are not begun, and the next run does all."""
    harness = Harness()
    for number in range(8):
        harness.deliver(f"m{number}", GOOD)
    engine = InterruptedEngine(harness.store)

    def on_wait() -> None:
        assert engine.began.wait(60)
        raise KeyboardInterrupt

    app = harness.app()
    service = streaming.service_on(
        app, engine, ListSource(harness.store, harness.layout.manifests_folder, on_wait=on_wait)
    )
    halt = service.runner.halt

    def halted(*_: Any) -> None:
        halt()
        engine.interrupted.set()

    service.runner.halt = halted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        service.run(once=True)
    found = [app.ledger.state(ManifestKey(DAY, f"m{number}")).attempts.unfolded for number in range(8)]
    failures = [attempts[-1].failure for attempts in found if attempts]
    assert failures
    assert all(failure is not None and failure.passing for failure in failures)
    assert len(failures) < 8
    assert harness.run_once().committed == 8
    harness.check_exact()
