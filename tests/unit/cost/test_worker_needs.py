"""How many workers a load needs: sums that were done by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.cost.prices import DPU_PER_WORKER, Load
from compactor.cost.worker_needs import BUSY_SHARE, worker_need

REFERENCE = Load(200_000, 3_670_016)  # 203.89 MB/s
HUNDRED = Load(3_600, 100_000_000)  # 100 MB/s

NEEDS = [
    # load, MB/s a core, type, version, workers with the driver, busy, dollars an hour
    (REFERENCE, 320, "G.025X", "6.0", 2, 0.31858, 0.154),
    (REFERENCE, 320, "G.1X", "6.0", 2, 0.15929, 0.616),
    (REFERENCE, 86, "G.1X", "6.0", 3, 0.29635, 0.924),
    (REFERENCE, 14, "G.1X", "6.0", 9, 0.45511, 2.772),
    (REFERENCE, 14, "G.2X", "5.1", 5, 0.45511, 4.40),
    (REFERENCE, 14, "R.2X", "5.1", 5, 0.45511, 5.20),
    (HUNDRED, 10, "G.1X", "5.1", 6, 0.5, 2.64),  # exactly five at half of their time, and the driver
    (HUNDRED, 9.99, "G.1X", "5.1", 7, 0.417084, 3.08),
]


@pytest.mark.parametrize(("load", "speed", "worker_type", "version", "workers", "busy", "dollars"), NEEDS)
def test_the_smallest_job_that_is_enough(
    load: Load, speed: float, worker_type: str, version: str, workers: int, busy: float, dollars: float
) -> None:
    """Workers beside the driver are busy at most half of their time, and each costs the same as the driver."""
    need = worker_need(load, speed * 1e6, worker_type, version)
    assert need.workers == workers
    assert need.busy_share == pytest.approx(busy, rel=1e-4)
    assert need.dollars_per_hour == pytest.approx(dollars)
    assert need.dollars_per_month == pytest.approx(dollars * 730)
    assert need.dollars_per_terabyte == pytest.approx(dollars / (load.files_per_hour * load.file_bytes / 1e12))


@given(st.floats(1, 1e6), st.integers(1, 10**9), st.floats(1e5, 1e10), st.sampled_from(sorted(DPU_PER_WORKER)))
def test_one_worker_less_is_not_enough(files: float, size: int, speed: float, worker_type: str) -> None:
    """No worker is planned to be busy for more than its share of the time, and none is there for nothing."""
    need = worker_need(Load(files, size), speed, worker_type, "6.0")
    executors = need.workers - 1
    assert executors >= 1
    assert need.busy_share <= BUSY_SHARE * (1 + 1e-6)
    assert executors == 1 or need.busy_share * executors / (executors - 1) > BUSY_SHARE


@pytest.mark.parametrize("worker_type", DPU_PER_WORKER)
def test_every_worker_that_has_a_price(worker_type: str) -> None:
    """Each type of worker with a price has its virtual CPUs: 4 for each DPU, and at least 2."""
    need = worker_need(REFERENCE, 14e6, worker_type, "6.0")
    assert need.vcpu_per_worker == max(2, 4 * DPU_PER_WORKER[worker_type])
