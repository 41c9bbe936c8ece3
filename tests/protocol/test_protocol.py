"""The model of the protocol holds, its guards are needed, and the code does what the model says."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.layout import ManifestKey
from tests.protocol import claim_traces, closing_traces, landing_traces, shard_traces
from tests.protocol.configurations import SMALL, Configuration, first_change, violated_without
from tests.protocol.traces import Chained, Trace, damaged, fingerprint, seen, strays, strays_of
from tests.support.extras import TLC
from tests.support.fakes import FailingEngine
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.rebuilding import WatchedStore

KEY = ManifestKey(DAY, "m1")
ONE_GUARD = ("Claims", "one record binds or revokes an id")
SMALLER = {
    "Closing": {"MaxGenerations": "1"},
    "Shards": {"Story": '"their number grows"'},
    "Landing": {"MaxStops": "0"},
}
"""Constants of those small configurations that are the largest: `make spec` explores them as they are."""

DEATHS = list(CrashPoint)

pytestmark = TLC.needed


def trace_of(step: CrashPoint, *, fails: bool = False) -> Trace:
    """The states of a manifest whose first driver dies at a step; with `fails`, after failures that end it."""
    harness = Harness(stream={"max_attempts": 2})
    uri = harness.deliver("m1", GOOD, FLAWED)
    trace = Trace(f"a death at {step}, {fails=}")

    def note() -> None:
        trace.add(seen(harness.store, harness.layout, KEY))

    store = WatchedStore(harness.store, on_change=note)
    note()
    engine = FailingEngine(store, ValueError("too much")) if fails else harness.engine(store)
    with suppress(DiedError):
        harness.runner(on_crash_point=dying_at(step), store=store, engine=engine).run([uri])
    for _ in range(3):
        harness.runner(store=store, engine=engine).resume(["m1"])
    harness.runner(store=store, engine=engine).run(harness.waiting())
    return trace


def compare(model: Configuration, traces: Sequence[Trace], *wrong: Trace) -> None:
    """Compare traces with the model: only those that are wrong on purpose differ."""
    found = strays_of(model, [*traces, *wrong])
    assert [each.partition(": in state")[0] for each in found] == [each.name for each in wrong], found


def test_the_model_holds_and_is_that_of_the_code() -> None:
    """The smallest configurations, one guard that is taken out, and the deaths of drivers at every step."""
    smallest = [replace(each, values={**each.values, **SMALLER.get(each.module, {})}) for each in SMALL]
    assert [(each.module, found.violated) for each in smallest if (found := each.explored()).violated] == []
    assert violated_without(*ONE_GUARD)
    traces = [trace_of(step) for step in DEATHS] + [trace_of(CrashPoint.DECIDED, fails=True)]
    assert all(trace.states[-1].done and not trace.states[-1].open for trace in traces)
    attempts = max(trace.states[-1].number for trace in traces)
    wrong = next(each for each in damaged(traces[0]) if each.states[-2].done)
    compare(first_change("{d1}", attempts, stops=1), traces, wrong)
    claimed = [*claim_traces.claim_traces()]
    compare(claim_traces.MODEL, claimed, next(damaged(claimed[0])))


@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.full)])
def test_closings_are_behaviours_of_the_model(every: int) -> None:
    """Closings that die, lose an answer or meet another process."""
    recorded = [*closing_traces.deaths(), *closing_traces.lost_answers(), *closing_traces.meetings()]
    traces = [*{fingerprint(trace): trace for trace in recorded}.values()][::every]
    compare(closing_traces.MODEL, traces, [*damaged(traces[0])][-1])


@pytest.mark.parametrize(
    ("planned", "stops", "at"),
    [
        pytest.param(landing_traces.deaths, 1, (1, 3), id="deaths"),
        pytest.param(landing_traces.deaths, 1, range(6), id="all deaths", marks=pytest.mark.full),
        pytest.param(landing_traces.meetings, 0, range(5), id="all meetings", marks=pytest.mark.full),
    ],
)
def test_plans_of_a_topic_are_behaviours_of_the_model(
    planned: Callable[[], Iterator[landing_traces.Scene]], stops: int, at: Sequence[int]
) -> None:
    """Planners that die or are held up at each change."""
    every = [*planned()]
    assert len(every) > max(at)
    scenes = [every[each] for each in at]
    for scene in scenes:
        names = [file.uri for manifest in scene.manifests() for file in manifest.files]
        assert len(names) == len(set(names))
        last = scene.trace.states[-1]
        assert isinstance(last, Chained)
        assert last.drafts == last.written  # no job has begun with one
    traces = [scene.trace for scene in scenes]
    compare(landing_traces.model_of(scenes, stops=stops), traces, [*damaged(traces[-1])][-1])


def of_shards(story: str, scenes: Sequence[shard_traces.Scene]) -> None:
    """Compare the traces of jobs side by side with the model."""
    assert all(scene.by_shards.states[-1].done for scene in scenes)
    traces = [scene.by_shards for scene in scenes]
    compare(shard_traces.model_of(story), traces, [*damaged(traces[0])][-1])


def test_jobs_side_by_side_are_behaviours_of_the_model() -> None:
    """One that dies or is held up is taken over; its state is that of the model all the time."""
    of_shards("one goes", shard_traces.shard_scenes("one goes", [CrashPoint.OPENED, CrashPoint.DECIDED]))


@pytest.mark.full
@pytest.mark.parametrize("story", shard_traces.SCENES)
def test_jobs_side_by_side_at_every_step(story: str) -> None:
    """What each knows of the others, and what both leave of the manifest."""
    scenes = shard_traces.shard_scenes(story, shard_traces.STEPS)
    of_shards(story, scenes)
    assert strays([scene.by_commit for scene in scenes], stops=1, drivers="{d1, d2}") == []
