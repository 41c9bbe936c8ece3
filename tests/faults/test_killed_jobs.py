"""The real job on Spark, killed at moments that a seed chose, started twice, and made to forget."""

import itertools
import json
import random
import shutil
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from compactor.settings.settings import load_settings
from compactor.wiring.app import App
from compactor.wiring.opening import table_catalog
from tests.faults.accounts import check
from tests.faults.conftest import Lake, kill_group, wait_until
from tests.faults.tally import TALLY, Case, Kind
from tests.support import extras
from tests.support.engines import engines_on_spark
from tests.support.iceberg_tables import NAME, sql_place

SEED = 20251221
KILLS = 4
LONGEST_LIFE_SECONDS = 1.5
"""After its first attempt; work, outcomes and the end of the JVM take a job longer."""


def attempts(lake: Lake) -> int:
    return len(list((lake.state / "ledger").rglob("attempt-*.json")))


def done(lake: Lake) -> int:
    """Manifests that are done; only the ledger is searched, for folders of staging vanish under a search."""
    return len(list((lake.state / "ledger").rglob("done.json")))


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", engines_on_spark("native"))
def test_killed_again_and_again_then_delivered_again(lake: Lake, engine: str) -> None:
    """`kill -9` of the process group at any moment, the checkpoint rotated, all manifests delivered again: exact."""
    lake.use_engine(engine)
    kill_and_deliver_again(lake, TALLY.case(Kind.ANY_MOMENT))


WRITING_IN_PLACE = """
from compactor.wiring import streaming
streaming.is_in_place = lambda settings: True
from compactor.__main__ import main
main()
"""


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_killed_again_and_again_in_place(lake: Lake) -> None:
    """The same, where the native engine on Spark writes files under their final names: the table has each once."""
    extras.NATIVE.need()
    place = sql_place(lake.folder)
    lake.settings["schema"] = {"metadata_columns": ["file_date"]}
    lake.settings["table"] = {"catalog": "sql", "uri": place.uri, "warehouse": place.warehouse, "name": NAME}
    lake.use_engine("native")
    lake.program = ("-c", WRITING_IN_PLACE)
    kill_and_deliver_again(lake, TALLY.case(Kind.ANY_MOMENT))
    assert {path.parts[-3] for path in outputs(lake)} == {f"m-{number}" for number in range(4)}, (
        "in folders of attempts"
    )
    live = table_catalog(App(load_settings(lake.config, {}))).live_files()
    assert sorted(each.uri.removeprefix("file://") for each in live) == sorted(map(str, outputs(lake)))


def kill_and_deliver_again(lake: Lake, case: Case) -> None:
    """Kill jobs one after the other, then let one end, and compare every line."""
    chance = random.Random(SEED)
    for number in range(4):
        lake.add_manifest(f"m-{number}")
    for _ in range(KILLS):
        before = attempts(lake)
        job = lake.start("run", "--once")
        wait_until(lambda before=before: attempts(lake) > before, job)
        time.sleep(chance.uniform(0.0, LONGEST_LIFE_SECONDS))
        assert job.poll() is None, f"ended before it was killed: {job.communicate()[0]}"
        kill_group(job)
        case.died += 1
    assert case.died == KILLS
    rotate_checkpoints(lake)
    written = outputs(lake)
    for path in (lake.state / "archive").rglob("*.json"):
        shutil.copy(path, lake.folder / "manifests" / path.name)
    code, output = lake.run("run", "--once")
    assert code == 0, output
    check(lake, case)
    assert written.items() <= outputs(lake).items(), "what was done before is left as it was"


def outputs(lake: Lake) -> dict[Path, int]:
    """Each file of the output, with the time of its last write."""
    return {path: path.stat().st_mtime_ns for path in (lake.folder / "output").rglob("*.parquet")}


def rotate_checkpoints(lake: Lake) -> None:
    """Remove what the killed run left; a checkpoint that was written to just now takes --force."""
    left = [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]
    assert left, "a killed run leaves its checkpoint"
    code, output = lake.run("data", "clean", "--checkpoints")
    assert code == 1
    assert "expected no writes for 600 s, or --force" in output
    assert all(path.exists() for path in left)
    code, output = lake.run("data", "clean", "--checkpoints", "--force", "--json")
    assert code == 0, output
    assert json.loads(output)["removed"]["checkpoint_files"] == len(left)
    assert not [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]


@pytest.mark.faults
@pytest.mark.parametrize("engine", engines_on_spark("spark"))
def test_two_jobs_at_once(lake: Lake, engine: str) -> None:
    """Two streams on the same empty prefix take what arrives as one would have; SIGTERM ends both with 0."""
    lake.use_engine(engine)
    jobs = [lake.start("run") for _ in range(2)]
    wait_until((lake.folder / "manifests" / "_keep").exists, jobs[0])
    for number in range(4):
        lake.add_manifest(f"m-{number}")
    wait_until(lambda: done(lake) == 4, jobs[0])
    wait_until(lambda: len(list((lake.state / "runs").glob("*.json"))) == 2, jobs[1])
    for job in jobs:
        job.send_signal(signal.SIGTERM)
    told = [job.communicate(timeout=120)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], "\n".join(told)
    left = [pid for job in jobs for pid in children_of(job.pid)]
    assert not any(Path(f"/proc/{pid}").exists() for pid in left), "no JVM is left"
    check(lake, TALLY.case(Kind.TWO_DRIVERS))


def children_of(pid: int) -> list[int]:
    """Processes of the group that the job led."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


ROTATING = """
from compactor.wiring import streaming
streaming.MANIFESTS_PER_CHECKPOINT = 10
from compactor.__main__ import main
main()
"""


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", engines_on_spark("native"))
def test_killed_amid_rotations_of_the_checkpoint(lake: Lake, engine: str) -> None:
    """`kill -9` right after a rotation, twice; the next run has checkpoints of its own: exact."""
    lake.use_engine(engine)
    lake.program = ("-c", ROTATING)
    case, chance = TALLY.case(Kind.ANY_MOMENT), random.Random(SEED)
    numbers = itertools.count()

    def rotates(known: set[str]) -> bool:
        if len(list((lake.folder / "manifests").glob("*.json"))) < 6:
            lake.add_manifest(f"m-{next(numbers)}", files=1, lines=2)
        return any(name.endswith("-2") for name in checkpoints(lake) - known)

    for _ in range(2):
        known = checkpoints(lake)
        job = lake.start("run")
        wait_until(partial(rotates, known), job)
        time.sleep(chance.uniform(0.0, LONGEST_LIFE_SECONDS))
        kill_group(job)
        case.died += 1
    assert len(checkpoints(lake)) <= 2 * 2
    code, output = lake.run("run", "--once")
    assert code == 0, output
    check(lake, case)


def checkpoints(lake: Lake) -> set[str]:
    """Each of any run, by the name of its folder."""
    folder = lake.state / "checkpoint"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()
