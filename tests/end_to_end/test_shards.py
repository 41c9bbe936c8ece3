"""Real jobs side by side over one prefix: killed, paused and changed in number, without a line lost or doubled."""

import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import extras
from tests.support.shard_lake import ShardLake

pytestmark = [pytest.mark.large, pytest.mark.timeout(1200), extras.NATIVE.needed]

TAKE_OVER_SECONDS = 60.0
START_SECONDS = 90.0
BACKLOG = 40


def tell(text: str) -> None:
    """Print a measurement; `pytest -s` shows it."""
    sys.stdout.write(f"{text}\n")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[ShardLake]:
    made = ShardLake(tmp_path)
    yield made
    for job in made.jobs.values():
        job.kill()
        job.wait()


@contextmanager
def load(lake: ShardLake, pause_seconds: float = 0.3) -> Iterator[None]:
    """Deliver manifests all the time, as long as no more than `BACKLOG` wait: the jobs may be slow here."""
    ended = threading.Event()

    def deliver() -> None:
        number = 0
        while not ended.wait(pause_seconds):
            if len(lake.delivered) - len(lake.done()) > BACKLOG:
                continue
            number += 1
            lake.deliver(f"load-{len(lake.delivered)}-{number}")

    thread = threading.Thread(target=deliver)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_each_of_four_is_killed_and_taken_over(lake: ShardLake) -> None:
    """`kill -9` under load: what was of the dead one is done by others within a minute, and it gets its share back."""
    shards = [f"{number}/4" for number in range(1, 5)]
    for shard in shards:
        lake.start(shard)
    taken: dict[str, float] = {}
    with load(lake):
        lake.seconds_until(lambda: bool(lake.done()), START_SECONDS)
        for number, shard in enumerate(shards, start=1):
            lake.signal(shard, signal.SIGKILL)
            orphans = lake.names(number, 4, 6)
            lake.deliver(*orphans)
            taken[shard] = lake.seconds_until(lambda names=set(orphans): lake.done() >= names, TAKE_OVER_SECONDS)
            lake.start(shard)
    lake.seconds_until_all_done(120)
    lake.seconds_until(lambda: lake.has_begun("4/4"), START_SECONDS)
    tell(f"killed, taken over after {', '.join(f'{seconds:.1f} s' for seconds in taken.values())}")
    assert lake.stop() == [0, 0, 0, 0]
    assert len(lake.runs_at_work()) > 4, "those that were started again have worked"
    lake.check_exact()


def test_a_paused_job_is_taken_over_and_doubles_nothing_when_it_wakes(lake: ShardLake) -> None:
    """Only its heartbeat tells that it is gone, by the store's clock. What it was at when it was paused is exact."""
    for shard in ("1/2", "2/2"):
        lake.start(shard)
    with load(lake, 0.05):
        lake.seconds_until(lambda: len(lake.done()) > 20, START_SECONDS)
        lake.signal("2/2", signal.SIGSTOP)
        orphans = lake.names(2, 2, 6)
        lake.deliver(*orphans)
        seconds = lake.seconds_until(lambda: lake.done() >= {*orphans}, TAKE_OVER_SECONDS)
        lake.signal("2/2", signal.SIGCONT)
        back = lake.names(2, 2, 6)
        lake.deliver(*back)
        lake.seconds_until(lambda: lake.done() >= {*back}, TAKE_OVER_SECONDS)
    lake.seconds_until_all_done(120)
    tell(f"paused, taken over after {seconds:.1f} s; {lake.attempts()} attempts, {len(lake.delivered)} manifests")
    assert lake.stop() == [0, 0]
    lake.check_exact()


def test_two_become_four_become_three_under_load(lake: ShardLake) -> None:
    """No job is stopped for it, beside the one that there is no shard for any more, and those that are replaced."""
    for shard in ("1/2", "2/2"):
        lake.start(shard)
    with load(lake):
        lake.seconds_until(lambda: bool(lake.done()), START_SECONDS)
        for shard in ("3/4", "4/4"):
            lake.start(shard)
        runs = len(lake.runs_at_work())
        lake.seconds_until(lambda: len(lake.runs_at_work()) >= runs + 2, START_SECONDS)
        lake.signal("4/4", signal.SIGTERM)
        assert lake.jobs.pop("4/4").wait(60) == 0
        orphans = lake.names(4, 4, 6)
        lake.deliver(*orphans)
        seconds = lake.seconds_until(lambda: lake.done() >= {*orphans}, TAKE_OVER_SECONDS)
    lake.seconds_until_all_done(120)
    tell(
        f"2, 4, 3 shards: taken over after {seconds:.1f} s; {lake.attempts()} attempts, {len(lake.delivered)} manifests"
    )
    assert lake.stop() == [0, 0, 0]
    lake.check_exact()


@pytest.mark.parametrize(("manifests", "lines", "wide"), [(24, 30_000, 700), (300, 100, 20)], ids=["large", "small"])
def test_four_jobs_are_as_fast_as_one_on_the_same_cores(tmp_path: Path, manifests: int, lines: int, wide: int) -> None:
    """Shards cost next to nothing: more of them do as much with the same cores, and so do more with more cores."""
    seconds: dict[int, float] = {}
    for of in (1, 4):
        lake = ShardLake(tmp_path / str(of))
        lake.deliver(*(f"m-{number:04}" for number in range(manifests)), lines=lines, wide=wide)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for number in range(1, of + 1):
            lake.start(f"{number}/{of}")
        try:
            lake.seconds_until_all_done(500)
        finally:
            codes = lake.stop()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        seconds[of] = lake.seconds_at_work()
        tell(f"{of} jobs, {manifests} manifests of {lines} lines: {seconds[of]:.1f} s at work, {cpu:.1f} s of CPU")
        assert codes == [0] * of
        assert lake.attempts() == manifests, "nothing was done twice"
        lake.check_exact()
    assert seconds[4] < 2 * seconds[1]


ON_SPARK = {
    "COMPACTOR_STREAM__SOURCE": "spark",
    "COMPACTOR_CONVERT__ENGINE": "spark",
    "COMPACTOR_SPARK__CONF": '{"spark.master": "local[1]", "spark.ui.enabled": "false"}',
}


def test_a_move_to_the_service_and_back_under_load(lake: ShardLake) -> None:
    """A driver of Spark and a job without it work on one ledger for a while, there and back; each of them commits."""

    def wait_for_more() -> None:
        so_far = len(lake.done())
        lake.seconds_until(lambda: len(lake.done()) >= so_far + 10, START_SECONDS)

    with load(lake):
        lake.start("", env=ON_SPARK)
        lake.jobs["driver"] = lake.jobs.pop("")
        wait_for_more()
        lake.start("")
        lake.seconds_until(lambda: len(lake.runs_at_work()) == 2, START_SECONDS)
        wait_for_more()
        lake.signal("driver", signal.SIGTERM)
        assert lake.jobs.pop("driver").wait(120) == 0
        wait_for_more()
        lake.jobs["service"] = lake.jobs.pop("")
        lake.start("", env=ON_SPARK)
        lake.seconds_until(lambda: lake.has_begun(""), START_SECONDS)
        lake.signal("service", signal.SIGTERM)
        assert lake.jobs.pop("service").wait(60) == 0
        lake.seconds_until(lambda: len(lake.runs_at_work()) == 3, START_SECONDS)
        wait_for_more()
    lake.seconds_until_all_done(120)
    shares = sorted(lake.runs_at_work().values())
    tell(f"driver, service, driver: {shares} manifests; {lake.attempts()} attempts, {len(lake.delivered)} manifests")
    assert lake.stop() == [0]
    assert sum(shares) == len(lake.delivered)
    lake.check_exact()
