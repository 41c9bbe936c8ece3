"""The real job on Spark, killed at moments that nobody chose, started twice, and made to forget."""

import json
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.faults.accounts import check
from tests.faults.conftest import DAY, Lake, kill_group, wait_until
from tests.faults.tally import TALLY, Kind

SEED = 20251221


def attempts(lake: Lake) -> int:
    return len(list((lake.state / "ledger").rglob("attempt-*.json")))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.faults)])
def test_killed_again_and_again_then_delivered_again(lake: Lake, kills: int) -> None:
    """`kill -9` of the process group at any moment, the checkpoint rotated, then one run: exact.

    With no checkpoint left and all manifests delivered again, nothing changes.
    """
    case = TALLY.case(Kind.ANY_MOMENT)
    chance = random.Random(SEED)
    for number in range(4):
        lake.add_manifest(f"m-{number}")
    for _ in range(kills):
        before = attempts(lake)
        job = lake.start("run", "--once")
        wait_until(lambda before=before: attempts(lake) > before, job)
        time.sleep(chance.uniform(0.0, 4.0))
        if job.poll() is None:
            kill_group(job)
            case.died += 1
    rotate_checkpoints(lake)
    code, output = lake.run("run", "--once")
    assert code == 0, output
    check(lake, case)
    written = {path: path.stat().st_mtime_ns for path in (lake.folder / "output").rglob("*.parquet")}

    shutil.rmtree(lake.state / "checkpoint", ignore_errors=True)
    for path in (lake.state / "archive" / DAY).iterdir():
        shutil.copy(path, lake.folder / "manifests" / path.name)
    code, output = lake.run("run", "--once")
    assert code == 0, output
    lake.assert_exact()
    assert {path: path.stat().st_mtime_ns for path in (lake.folder / "output").rglob("*.parquet")} == written


def rotate_checkpoints(lake: Lake) -> None:
    """Remove what the killed run left; a checkpoint that was written to just now takes --force."""
    left = [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]
    assert left, "a killed run leaves its checkpoint"
    code, output = lake.run("clean", "--checkpoints")
    assert code == 1
    assert "expected nothing for 600 s, or --force" in output
    assert all(path.exists() for path in left)
    code, output = lake.run("clean", "--checkpoints", "--force", "--json")
    assert code == 0, output
    assert json.loads(output)["removed"]["checkpoint_files"] == len(left)
    assert not [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]


def test_two_jobs_at_once(lake: Lake) -> None:
    """Two runs on the same folders at the same time leave what one would have left."""
    for number in range(4):
        lake.add_manifest(f"m-{number}")
    jobs = [lake.start("run", "--once") for _ in range(2)]
    outputs = [job.communicate(timeout=240)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], "\n".join(outputs)
    check(lake, TALLY.case(Kind.TWO_DRIVERS))


def test_a_running_job_takes_what_arrives_and_ends_on_sigterm(lake: Lake) -> None:
    """The stream starts on an empty prefix, picks up a manifest that arrives later, and SIGTERM ends it with 0."""
    job = lake.start("run")
    wait_until((lake.folder / "manifests" / "_keep").exists, job)
    lake.add_manifest("late")
    wait_until(lambda: list(lake.state.rglob("late/done.json")), job)
    job.send_signal(signal.SIGTERM)
    output, _ = job.communicate(timeout=120)
    assert job.returncode == 0, output
    lake.assert_exact()
    assert not any(Path(f"/proc/{pid}").exists() for pid in children_of(job.pid)), "no JVM is left"


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
