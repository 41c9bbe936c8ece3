"""The process dies by SIGKILL right after a step, its successor perhaps too, and the last one puts everything right."""

import itertools
import signal
import time
from collections import Counter

import pyarrow.parquet as pq
import pytest
from _pytest.mark import ParameterSet

from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from tests.faults.accounts import check, manifests_in_effect
from tests.faults.conftest import Lake, keep_traces, record_in
from tests.faults.nursery import Nursery
from tests.faults.plain_job import LEASE_SECONDS, WRITING
from tests.faults.tally import TALLY, Case, Kind
from tests.support.engines import DEFAULT, engine_in_turns

OF_A_PLANNER = (PlanCrashPoint.CLAIMED, PlanCrashPoint.PLANNED)
OF_A_MANIFEST = list(CrashPoint)


def run(nursery: Nursery, lake: Lake, *arguments: str) -> int | str:
    """One plain job, from its start to its end."""
    job = nursery.start(lake.config, *record_in(lake), *arguments)
    ended = job.wait()
    assert ended in {0, 3, -signal.SIGKILL}, job.printed()
    return ended


def dies(nursery: Nursery, lake: Lake, case: Case, step: str, *arguments: str) -> bool:
    """Whether a job that is to die at a step, or amid a file, came to it."""
    died = run(nursery, lake, *arguments, "--die-at", step) == -signal.SIGKILL
    case.died += died
    case.not_reached += not died
    return died


def pairs() -> list[ParameterSet]:
    """Every step followed by every step in the next run; the short form has each third with the next one.

    The engines take turns, so that each of them dies at each step, in the first run and in the second.
    """
    steps = OF_A_MANIFEST
    short = {(number, (number + 1) % len(steps)) for number in range(0, len(steps), 3)}
    found = []
    for pair in itertools.product(range(len(steps)), repeat=2):
        engine = DEFAULT if pair in short else engine_in_turns(sum(pair) + 1)
        words = (engine, *(steps[number] for number in pair))
        found.append(pytest.param(*words, marks=() if pair in short else pytest.mark.faults, id="-".join(words)))
    return found


@pytest.mark.parametrize(
    "step",  # those that are no first one of `pairs`
    [pytest.param(each, marks=() if at % 3 else pytest.mark.full) for at, each in enumerate(OF_A_MANIFEST)],
)
def test_a_death_at_any_step_loses_and_doubles_nothing(nursery: Nursery, two_manifests: Lake, step: CrashPoint) -> None:
    """Killed once, then left alone: every line is there once. Every step of the list is one that a job comes to."""
    case = TALLY.case(Kind.SINGLE)
    assert dies(nursery, two_manifests, case, step)
    assert run(nursery, two_manifests) == 0
    check(two_manifests, case)
    keep_traces(two_manifests)


@pytest.mark.parametrize(("nursery", "first", "second"), pairs(), indirect=["nursery"])
def test_two_deaths_in_a_row_lose_and_double_nothing(
    nursery: Nursery, two_manifests: Lake, first: CrashPoint, second: CrashPoint
) -> None:
    """Killed at one step, its successor at another, then left alone: every line is there once.

    What the first one left comes before a manifest that arrives meanwhile, so the second death is a death in recovery
    wherever recovery comes to that step.
    """
    case = TALLY.case(Kind.PAIRS)
    assert dies(nursery, two_manifests, case, first)
    two_manifests.add_manifest("late")
    dies(nursery, two_manifests, case, second)
    assert run(nursery, two_manifests) == 0
    check(two_manifests, case)
    keep_traces(two_manifests)


def test_each_engine_dies_at_each_step_of_both_runs() -> None:
    """Although they take turns from pair to pair."""
    dies_at = {pair.values[:2] for pair in pairs()}, {(pair.values[0], pair.values[2]) for pair in pairs()}
    engines = {engine_in_turns(number) for number in range(2)}
    assert dies_at == (expected := set(itertools.product(engines, OF_A_MANIFEST)), expected)


AMID_A_FILE = [pytest.param(visit, marks=() if visit in {2, 9} else pytest.mark.faults) for visit in range(1, 11)]
"""At which write of a growing staged file; late ones are of files that are written again for a late key."""


@pytest.mark.parametrize("visit", AMID_A_FILE)
def test_a_death_amid_a_file_that_grows_leaves_none(streaming: Nursery, two_manifests: Lake, visit: int) -> None:
    """Killed with half of some bytes written: no half of a file can be seen, and every line is there once."""
    case = TALLY.case(Kind.SINGLE)
    assert dies(streaming, two_manifests, case, WRITING, "--visit", str(visit))
    staged = [path for path in (two_manifests.state / "staging").rglob("*.parquet") if path.name[0] != "."]
    assert all(pq.read_table(path).num_rows for path in staged)
    assert list((two_manifests.state / "staging").rglob(".~*")), "half of a file was being written"
    assert run(streaming, two_manifests) == 0
    check(two_manifests, case)
    keep_traces(two_manifests)


@pytest.mark.faults
@pytest.mark.parametrize("step", OF_A_MANIFEST)
@pytest.mark.parametrize("visit", [1, 9])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_death_amid_a_file_and_one_at_a_step(
    streaming: Nursery, two_manifests: Lake, step: CrashPoint, visit: int, is_first: bool
) -> None:
    """In either order, with a manifest that arrives between them: every line is there once."""
    case = TALLY.case(Kind.PAIRS)
    amid_a_file, at_a_step = (WRITING, "--visit", str(visit)), (step,)
    first, second = (amid_a_file, at_a_step) if is_first else (at_a_step, amid_a_file)
    assert dies(streaming, two_manifests, case, *first)
    two_manifests.add_manifest("late")
    dies(streaming, two_manifests, case, *second)
    assert run(streaming, two_manifests) == 0
    check(two_manifests, case)
    keep_traces(two_manifests)


def planner_cases() -> list[object]:
    """Where the first planner dies, at which manifest, where the second dies if it does, and how the rest start."""
    chosen = {(step, 1, None, True) for step in OF_A_PLANNER}
    every = itertools.product(OF_A_PLANNER, (1, 2), (None, *OF_A_PLANNER), (False, True))
    return [
        pytest.param(*each, marks=() if each in chosen else pytest.mark.faults, id="-".join(map(str, each)))
        for each in every
    ]


@pytest.mark.parametrize(("first", "visit", "second", "together"), planner_cases())
def test_dead_planners_leave_every_file_in_one_manifest(
    nursery: Nursery, lake: Lake, first: CrashPoint, visit: int, second: CrashPoint | None, together: bool
) -> None:
    """Planners die between claim and manifest; two more, one after the other or at once, plan what is left, once."""
    case = TALLY.case(Kind.PLANNER)
    lake.settings["builder"] = {"target_manifest_bytes": 2_000}
    lake.write_settings()
    lake.add_files("raw", files=6)
    planning = ("--plan", str(lake.folder / "input"))
    assert dies(nursery, lake, case, first, *planning, "--visit", str(visit))
    if second is not None:
        time.sleep(LEASE_SECONDS)
        dies(nursery, lake, case, second, *planning)
    time.sleep(LEASE_SECONDS)
    if together:
        assert [job.wait() for job in [nursery.start(lake.config, *planning) for _ in range(2)]] == [0, 0]
    else:
        assert [run(nursery, lake, *planning) for _ in range(2)] == [0, 0]
    assert manifests_in_effect(lake) == Counter(str(path) for path in (lake.folder / "input").iterdir())
    assert run(nursery, lake) == 0
    check(lake, case)


def test_a_manifest_that_kills_its_driver_is_a_dead_letter_and_its_neighbours_commit(
    nursery: Nursery, lake: Lake
) -> None:
    """Any manifest may cause a death beside others; one with `max_attempts` deaths alone is a dead letter."""
    lake.settings["stream"]["max_attempts"] = 2
    lake.write_settings()
    lake.add_manifest("good-1")
    lake.add_manifest("good-2")
    expected = sorted(lake.lines)
    lake.add_manifest("killer")
    deaths = 0
    while run(nursery, lake, "--die-at", CrashPoint.INSPECTED, "--only", "killer") == -signal.SIGKILL:
        deaths += 1
        assert deaths <= 4
    assert deaths >= 2
    assert lake.output_lines() == expected
    assert "retries_exhausted" in (lake.state / "failed" / "killer.reason.json").read_text()
    assert run(nursery, lake) == 0, "the next run does not trip over it again"
