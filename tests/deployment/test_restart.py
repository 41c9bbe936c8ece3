"""A restart drains the job and waits for the next run; it says each step, and never waits for ever."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from compactor.core.ports import ProcessName
from compactor.ledger.heartbeat import Heartbeat, Runs
from compactor.settings.control_policy import Policy
from deploy.restart import Restart
from deploy.stack import DeploymentError
from tests.support.fakes import FaultyStore
from tests.support.harness import Harness

NEW, OLD = "0.2.0", "0.1.0"


class Alive:
    """The processes of another machine, of which nothing is known."""

    def this(self) -> ProcessName:
        return ProcessName("elsewhere", 1)

    def is_gone(self, _process: ProcessName) -> bool:
        return False


@dataclass
class Scene:
    """A state with runs whose heartbeats and ends come in the time of a clock."""

    harness: Harness = field(default_factory=Harness)
    lines: list[str] = field(default_factory=list)
    beating: dict[str, Heartbeat] = field(default_factory=dict)
    due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    passed: float = 0.0

    def begin(self, run_id: str, release: str) -> None:
        harness = self.harness
        process = ProcessName("elsewhere", len(self.beating))
        beat = Heartbeat(harness.store, harness.layout, harness.clock, run_id, process, release=release)
        beat._write_heartbeat()
        self.beating[run_id] = beat

    def end(self, run_id: str) -> None:
        del self.beating[run_id]
        layout = self.harness.layout
        self.harness.store.delete([layout.run(run_id), layout.stop_request(run_id)])

    def later(self, seconds: float, change: Callable[[], None]) -> None:
        self.due.append((seconds, change))

    def pause(self, seconds: float) -> None:
        self.passed += seconds
        self.harness.clock.advance(seconds)
        for moment, change in [each for each in self.due if each[0] <= self.passed]:
            self.due.remove((moment, change))
            change()
        for beat in self.beating.values():
            beat._write_heartbeat()

    def restart(self, store: Any = None, **control: Any) -> None:
        harness = self.harness
        Restart(
            runs=Runs(store or harness.store, harness.layout, harness.clock, Alive()),
            policy=Policy(**control),
            release=NEW,
            seconds=lambda: self.passed,
            pause=self.pause,
            echo=self.lines.append,
        ).go()


def test_the_old_run_is_drained_and_the_new_one_awaited() -> None:
    """Each step is told, with the release of the run."""
    scene = Scene()
    scene.begin("a", OLD)
    scene.later(84, lambda: scene.end("a"))
    scene.later(150, lambda: scene.begin("b", NEW))
    scene.restart()
    assert scene.lines == [
        "run a (release 0.1.0): asked to stop; it finishes the manifests in flight",
        "run a (release 0.1.0): ended after 1 min 24 s",
        "Waiting up to 25 min for the control plane to start the next run.",
        "run b (release 0.2.0): running after 1 min 6 s",
    ]


def test_a_run_that_does_not_end_is_left_to_the_control_plane_for_a_while() -> None:
    """Past its limit the control plane has the service kill it; past another one the deployment fails."""
    scene = Scene()
    scene.begin("a", OLD)
    scene.later(960, lambda: scene.end("a"))
    scene.later(1000, lambda: scene.begin("b", NEW))
    scene.restart()
    assert "still at work 15 min after it was asked to stop; the control plane now stops it" in scene.lines[1]
    hung = Scene()
    hung.begin("a", OLD)
    with pytest.raises(DeploymentError, match=r"a \(release 0.1.0\): still at work 23 min after"):
        hung.restart()
    assert hung.passed == 1380
    assert sum("still at work" in line for line in hung.lines) == 1


def test_no_next_run_is_an_error_with_its_next_move() -> None:
    """Where no run is wanted none is awaited; else the wait has an end."""
    for mode, words in (("never", 'control.mode is "never"'), ("on_work", "when work waits")):
        scene = Scene()
        scene.restart(mode=mode)
        assert words in scene.lines[-1]
    scene = Scene()
    with pytest.raises(DeploymentError, match="no run sent a heartbeat within 25 min; see compactor job check"):
        scene.restart()


def test_a_run_that_was_on_its_way_is_replaced_too() -> None:
    """A run that began before the deployment and shows itself only now is drained; a second one tells of a mistake."""
    scene = Scene()
    scene.later(10, lambda: scene.begin("a", OLD))
    scene.later(40, lambda: scene.end("a"))
    scene.later(80, lambda: scene.begin("b", NEW))
    scene.restart()
    assert scene.lines[-1].startswith("run b (release 0.2.0): running")
    wrong = Scene()
    wrong.later(10, lambda: wrong.begin("a", OLD))
    wrong.later(40, lambda: wrong.end("a"))
    wrong.later(80, lambda: wrong.begin("b", OLD))
    with pytest.raises(DeploymentError, match=r"b \(release 0.1.0\) has started, expected release 0.2.0.*make package"):
        wrong.restart()


def test_a_store_that_throttles_ends_nothing() -> None:
    """What cannot be read now is read at the next poll."""
    scene = Scene()
    scene.begin("a", OLD)
    scene.later(30, lambda: scene.end("a"))
    scene.later(60, lambda: scene.begin("b", NEW))
    store = FaultyStore(scene.harness.store)
    for call in (1, 2, 3):
        store.unavailable_at(call, "stat")
    scene.restart(store)
    assert sum(line.startswith("The runs cannot be read now") for line in scene.lines) == 3
    assert scene.lines[-1].startswith("run b (release 0.2.0): running")
