"""Jobs with a table in a real catalog, killed by SIGKILL at every step, and while a commit is on its way.

They publish in both ways. In place, a job that is held up at a step finds that another one did everything, and that all
orphans are deleted, whatever their age.
"""

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from compactor.adapters.iceberg.opening import open_catalog
from compactor.core.crash_points import CrashPoint
from compactor.settings.settings import load_settings
from compactor.wiring import operating
from compactor.wiring.app import App
from compactor.wiring.opening import table_catalog
from tests.faults.accounts import check
from tests.faults.catalog_proxy import CatalogProxy, Fate
from tests.faults.conftest import Lake
from tests.faults.nursery import STOPPED, Job, Nursery
from tests.faults.plain_job import WRITING
from tests.faults.tally import TALLY, Kind
from tests.support.engines import engine_in_turns
from tests.support.extras import NATIVE
from tests.support.iceberg_tables import rest_place
from tests.support.memory_store import ManualClock
from tests.support.rest_catalog import RestCatalogServer

STEPS = list(CrashPoint)
IN_SHORT = {("in_place", CrashPoint.PUBLISHED_ONE)}

FATES = (Fate.WELL, Fate.LOST, Fate.DONE_503, Fate.DROPPED, Fate.LATE)
"""What becomes of the commit that was on its way: made, made, made, not made, made later if the table is as it was."""

OF_A_COMMIT = ("copy", Fate.LATE)
MANY_KILLS = 12


@pytest.fixture
def proxy(rest_catalog: RestCatalogServer) -> Iterator[CatalogProxy]:
    with CatalogProxy(rest_catalog.url) as started:
        yield started


COPY, IN_PLACE = "copy", "in_place"
BY_NATIVE = pytest.param(IN_PLACE, marks=NATIVE.needed)


@pytest.fixture(params=[COPY, BY_NATIVE])
def table_lake(request: pytest.FixtureRequest, two_manifests: Lake, proxy: CatalogProxy) -> Lake:
    """A lake whose output a table lists, with two manifests to do, each a batch of its own."""
    lake = two_manifests
    lake.settings["schema"] = {"metadata_columns": ["file_date"]}
    lake.settings["table"] = {
        "catalog": "rest",
        "uri": proxy.url,
        "name": f"lake.{lake.folder.name}",
    }
    lake.write_settings()
    lake.in_place = request.param == IN_PLACE
    return lake


def start(nursery: Nursery, lake: Lake, *arguments: str) -> Job:
    return nursery.start(lake.config, *(["--in-place"] if lake.in_place else []), *arguments)


def run(nursery: Nursery, lake: Lake, *arguments: str) -> int | str:
    """One plain job, from its start to its end."""
    return ended(start(nursery, lake, *arguments))


def ended(job: Job) -> int | str:
    code = job.wait()
    assert code in {0, -signal.SIGKILL}, job.printed()
    return code


def killed_once(nursery: Nursery, lake: Lake, proxy: CatalogProxy, step: str, *visit: str) -> None:
    """Kill a job at a step, and have another one do the rest."""
    case = TALLY.case(Kind.SINGLE)
    assert run(nursery, lake, "--die-at", step, *visit) == -signal.SIGKILL
    case.died += 1
    assert run(nursery, lake) == 0
    check(lake, case)
    check_table(lake, proxy)


def check_table(lake: Lake, proxy: CatalogProxy) -> None:
    """The table has each file of the output once, and each row; what comes late changes nothing."""
    while proxy.has_late():
        proxy.land()
    app = App(load_settings(lake.config, {}))
    expected = sorted(str(path) for path in (lake.folder / "output").rglob("*.parquet"))
    assert sorted(each.uri.removeprefix("file://") for each in table_catalog(app).live_files()) == expected
    table = open_catalog(rest_place(proxy.url)).load_table(app.settings.table.name)
    ids = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    assert sorted(ids) == sorted(line.split('"')[3] for line in lake.lines)


@pytest.mark.parametrize(
    ("table_lake", "step"),
    [
        pytest.param(way, step, marks=[*needed, *(() if (way, step) in IN_SHORT else (pytest.mark.full,))])
        for way, needed in ((COPY, ()), (IN_PLACE, (NATIVE.needed,)))
        for step in STEPS
    ],
    indirect=["table_lake"],
)
def test_a_death_at_any_step(nursery: Nursery, table_lake: Lake, proxy: CatalogProxy, step: CrashPoint) -> None:
    """Each row is in the table once, and each manifest is done."""
    killed_once(nursery, table_lake, proxy, step)


def sweep(lake: Lake) -> None:
    """Delete all orphans, as if they were old."""
    clock = ManualClock(datetime.now(UTC) + timedelta(days=2))
    operating.cleaner(App(load_settings(lake.config, {}), clock=clock)).clean(archive_days=3650, all_orphans=True)


ONLY_IN_PLACE = pytest.mark.parametrize("table_lake", [BY_NATIVE], indirect=True)


@ONLY_IN_PLACE
@pytest.mark.parametrize(
    "visit",
    [pytest.param(1, marks=pytest.mark.full), *(pytest.param(each, marks=pytest.mark.faults) for each in (2, 9))],
)
def test_a_death_amid_a_file_in_place(nursery: Nursery, table_lake: Lake, proxy: CatalogProxy, visit: int) -> None:
    """Half of a file is no file, and what was whole by then is of no commit and goes."""
    killed_once(nursery, table_lake, proxy, WRITING, "--visit", str(visit))


@ONLY_IN_PLACE
@pytest.mark.parametrize(
    "step",
    [pytest.param(step, marks=() if step is CrashPoint.VERIFIED else pytest.mark.faults) for step in (*STEPS, WRITING)],
)
def test_a_driver_that_is_held_up_and_swept(nursery: Nursery, table_lake: Lake, proxy: CatalogProxy, step: str) -> None:
    """It goes on after another one did everything: what it writes then is of no commit, and the next sweep takes it."""
    case = TALLY.case(Kind.TWO_DRIVERS)
    late = start(nursery, table_lake, "--stop-at", step)
    assert late.wait() == STOPPED, late.printed()
    case.stopped += 1
    sweep(table_lake)
    assert run(nursery, table_lake) == 0
    sweep(table_lake)
    late.go_on()
    assert late.wait() == 0, late.printed()
    sweep(table_lake)
    check(table_lake, case)
    check_table(table_lake, proxy)


@pytest.mark.parametrize(
    ("table_lake", "fate"),
    [
        pytest.param(way, fate, marks=[*needed, *(() if (way, fate) == OF_A_COMMIT else (pytest.mark.full,))])
        for way, needed in ((COPY, ()), (IN_PLACE, (NATIVE.needed,)))
        for fate in FATES
    ],
    indirect=["table_lake"],
    ids=str,
)
def test_a_death_while_a_commit_is_on_its_way(
    nursery: Nursery, table_lake: Lake, proxy: CatalogProxy, fate: Fate
) -> None:
    """No process gets its answer, whatever it is. The next job, and a commit that arrives beside it, double nothing."""
    case = TALLY.case(Kind.ANY_MOMENT)
    job = start(nursery, table_lake)
    proxy.fates = lambda: Fate.WELL if proxy.posts else _dying(job, fate)
    assert ended(job) == -signal.SIGKILL
    case.died += 1
    assert run(nursery, table_lake) == 0
    check(table_lake, case)
    check_table(table_lake, proxy)


@pytest.mark.faults
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("nursery", "seed"), [(engine_in_turns(seed), seed) for seed in range(8)], indirect=["nursery"]
)
def test_killed_at_any_commit_again_and_again(
    nursery: Nursery, table_lake: Lake, proxy: CatalogProxy, seed: int
) -> None:
    """Jobs die at commits, one after the other and two at once, while manifests arrive and answers come late."""
    case, chance = TALLY.case(Kind.ANY_MOMENT), random.Random(seed)
    for number in range(MANY_KILLS):
        table_lake.add_manifest(f"m-{number}", files=1)
        jobs = [start(nursery, table_lake) for _ in range(chance.choice((1, 1, 2)))]

        def fate(jobs: list[Job] = jobs) -> Fate:
            if chance.random() < 0.3:
                threading.Thread(target=proxy.land).start()  # beside this one
            found = chance.choice(FATES)
            return _dying(chance.choice(jobs), found) if chance.random() < 0.5 else found

        proxy.fates = fate
        case.died += sum(ended(job) == -signal.SIGKILL for job in jobs)
    assert case.died
    proxy.fates = lambda: Fate.WELL
    assert run(nursery, table_lake) == 0
    check(table_lake, case)
    check_table(table_lake, proxy)


def _dying(job: Job, fate: Fate) -> Fate:
    with suppress(ProcessLookupError):  # it was killed before
        os.kill(job.process_id, signal.SIGKILL)
    return fate
