"""Two drivers on the same folders: one is held up at a step for as long as the other one needs for everything."""

import hashlib
import itertools
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from compactor.core.crash_points import CrashPoint, PlanCrashPoint
from tests.faults.accounts import check, manifests_in_effect
from tests.faults.conftest import Lake
from tests.faults.nursery import STOPPED, Job, Nursery
from tests.faults.plain_job import WRITING
from tests.faults.tally import TALLY, Case, Kind
from tests.faults.test_crash_points import AMID_A_FILE, LEASE_SECONDS, OF_A_MANIFEST, OF_A_PLANNER, run
from tests.support.engines import DEFAULT, engine_in_turns

UNMOVED = (
    "output",
    "state/rejects",
    "state/ledger",
    "state/accepted",
    "state/archive",
    "state/failed",
    "state/schemas",
)
ATTEMPT = re.compile(r"attempt-\d+\.json")


@dataclass(frozen=True, slots=True)
class Written:
    """A file as it was written: who writes it again, if with the same bytes, changes this."""

    digest: str
    written_ns: int
    inode: int


def written(lake: Lake) -> dict[Path, Written]:
    """Everything that may not change once it is there."""
    files = [path for folder in UNMOVED for path in (lake.folder / folder).rglob("*") if path.is_file()]
    return {path: _written(path) for path in files if not path.name.startswith(".~")}


def _written(path: Path) -> Written:
    status = path.stat()
    return Written(hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mtime_ns, status.st_ino)


def held_up(nursery: Nursery, lake: Lake, case: Case, step: str, *arguments: str) -> Job:
    """A job that stopped at a step or amid a file, or that ended well because it never came to it."""
    job = nursery.start(lake.config, *arguments, "--stop-at", step)
    ended = job.wait()
    assert ended in {STOPPED, 0}, job.printed()
    case.stopped += ended == STOPPED
    case.not_reached += ended != STOPPED
    return job


def ends_well(job: Job) -> None:
    """A job that was held up goes on, and ends with code 0."""
    job.go_on()
    assert job.wait() == 0, job.printed()


def changes_nothing(lake: Lake, before: dict[Path, Written]) -> None:
    """All is as it was, but for attempts that the late one began before it could know better."""
    after = written(lake)
    assert {path: after.get(path) for path in before} == before
    assert [path.name for path in after if path not in before and not ATTEMPT.fullmatch(path.name)] == []


def overtaken(nursery: Nursery, lake: Lake, step: str, *visit: str) -> None:
    """Hold a driver up at a step until another one has done everything."""
    case = TALLY.case(Kind.TWO_DRIVERS)
    late = held_up(nursery, lake, case, step, *visit)
    assert case.stopped
    assert run(nursery, lake) == 0
    before = written(lake)
    ends_well(late)
    changes_nothing(lake, before)
    check(lake, case)


SHORT = (CrashPoint.ATTEMPTED, CrashPoint.VERIFIED, CrashPoint.PUBLISHED_ONE)
"""Before the decision with work to do, right before the decision, and amid publication."""


@pytest.mark.parametrize(
    "step", [pytest.param(step, marks=() if step in SHORT else pytest.mark.faults) for step in OF_A_MANIFEST]
)
def test_a_driver_that_was_held_up_changes_nothing(nursery: Nursery, two_manifests: Lake, step: CrashPoint) -> None:
    """While it stands at a step, another driver does everything; it goes on, finds that it lost, and ends with 0."""
    overtaken(nursery, two_manifests, step)


@pytest.mark.parametrize("visit", AMID_A_FILE)
def test_a_driver_that_was_held_up_amid_a_file_changes_nothing(
    streaming: Nursery, two_manifests: Lake, visit: int
) -> None:
    """It goes on to write a staged file long after another one decided and cleaned up: what it leaves is nothing."""
    overtaken(streaming, two_manifests, WRITING, "--visit", str(visit))


def steps_of_two() -> list[object]:
    """Every step of one driver with every step of the other, the engines in turns; the short form has a few."""
    short = {(CrashPoint.VERIFIED, CrashPoint.DECIDED), (CrashPoint.DECIDED, CrashPoint.UNSTAGED)}
    found = []
    for pair in itertools.product(OF_A_MANIFEST, repeat=2):
        engine = DEFAULT if pair in short else engine_in_turns(sum(map(OF_A_MANIFEST.index, pair)) + 1)
        words = (engine, *pair)
        found.append(pytest.param(*words, marks=() if pair in short else pytest.mark.faults, id="-".join(words)))
    return found


@pytest.mark.parametrize(("nursery", "first", "second"), steps_of_two(), indirect=["nursery"])
def test_two_drivers_that_were_both_held_up(
    nursery: Nursery, two_manifests: Lake, first: CrashPoint, second: CrashPoint
) -> None:
    """One stands at a step, then the other one at another; the first goes on to its end, then the second."""
    lake, case = two_manifests, TALLY.case(Kind.TWO_DRIVERS)
    jobs = [held_up(nursery, lake, case, step) for step in (first, second)]
    for job in jobs[: case.stopped]:
        ends_well(job)
    check(lake, case)


@pytest.mark.parametrize(
    ("step", "visit"),
    [
        pytest.param(step, visit, marks=() if (step, visit) == (PlanCrashPoint.CLAIMED, 1) else pytest.mark.faults)
        for step in OF_A_PLANNER
        for visit in (1, 2)
    ],
)
def test_a_planner_that_was_held_up_doubles_nothing(nursery: Nursery, lake: Lake, step: CrashPoint, visit: int) -> None:
    """It stands until its lease is over and others took its files; what it writes then never takes effect."""
    case = TALLY.case(Kind.TWO_DRIVERS)
    lake.settings["builder"] = {"target_manifest_bytes": 2_000}
    lake.write_settings()
    lake.add_files("raw", files=6)
    planning = ("--plan", str(lake.folder / "input"))
    late = held_up(nursery, lake, case, step, *planning, "--visit", str(visit))
    assert case.stopped
    time.sleep(LEASE_SECONDS)
    assert run(nursery, lake, *planning) == 0
    ends_well(late)
    assert manifests_in_effect(lake) == Counter(str(path) for path in (lake.folder / "input").iterdir())
    assert run(nursery, lake) in {0, 3}, "a manifest whose files were all taken over is a dead letter"
    check(lake, case)


@pytest.mark.faults
@pytest.mark.parametrize("step", OF_A_MANIFEST)
def test_a_driver_that_is_killed_while_it_is_held_up(nursery: Nursery, two_manifests: Lake, step: CrashPoint) -> None:
    """It stands at a step while another driver does everything, and then dies: no driver clears up after it."""
    lake, case = two_manifests, TALLY.case(Kind.TWO_DRIVERS)
    late = held_up(nursery, lake, case, step)
    assert case.stopped
    assert run(nursery, lake) == 0
    late.kill()
    assert late.wait() == -signal.SIGKILL
    case.died += 1
    check(lake, case)
