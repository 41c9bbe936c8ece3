"""An output file that is sent in parts while it grows, which the native engine alone does."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compactor.settings.toml import toml_of
from tests.faults.fault_rules import PASSING, FaultKind, Operation, Rule, applies
from tests.faults.proxy import FaultProxy
from tests.faults.s3.cases import record_and_judge, shortened
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import S3Lake
from tests.faults.s3_server import ROOT
from tests.support.engines import NATIVE

PART_SECONDS = 2.0  # a part of some MiB takes longer than a call without a body
LARGE_KIB = 8 * 1024  # of input; of Parquet it is enough for two parts, of S3's least size each
IN_PARTS = [Operation.CREATE_UPLOAD, Operation.UPLOAD_PART, Operation.COMPLETE_UPLOAD, Operation.COPY_PART]
PART_CASES = [(kind, operation) for kind in PASSING for operation in IN_PARTS if applies(kind, operation)]


@pytest.fixture
def large_lake(lakes: Callable[[], S3Lake], engine: str) -> Callable[[], S3Lake]:
    """Makes lakes whose output file is sent in parts."""
    if engine != NATIVE:
        pytest.skip("the plain engine puts whole files")

    def make() -> S3Lake:
        lake = lakes()
        lake.fill_with_one_large(LARGE_KIB)
        return lake

    return make


@pytest.mark.parametrize(
    ("kind", "operation", "numbers"),
    shortened([(*case, [1, 2]) for case in PART_CASES], [(FaultKind.DONE_RESET, Operation.COMPLETE_UPLOAD, [1])]),
)
def test_a_job_gets_over_a_fault_amid_a_file_in_parts(
    kind: FaultKind,
    operation: Operation,
    numbers: Sequence[int],
    large_lake: Callable[[], S3Lake],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """One fault at any call of an upload, for a client that does not repeat: the file is whole, or there is none."""
    for number in numbers:
        lake = large_lake()
        proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
        proxy.restart_count()
        restarts = lake.run_job(proxy.url, attempts=1, timeout_seconds=PART_SECONDS)
        traffic = proxy.restart_count()
        record_and_judge(lake, findings, "parts", traffic.injected, [kind], restarts)
        if traffic.calls[operation] < number:
            break


@pytest.mark.faults
def test_an_upload_that_cannot_even_be_aborted_does_no_harm(
    large_lake: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings
) -> None:
    """A part fails, and so does the request to forget the others: another attempt makes the file."""
    lake = large_lake()
    abort = frozenset({Operation.ABORT_UPLOAD})
    # What the native client could not send, boto3 sends again; another part may be under way.
    rules = [Rule(FaultKind.RESET, frozenset({Operation.UPLOAD_PART}), calls=frozenset({2, 3, 4}))]
    proxy.use([*rules, Rule(FaultKind.RESET, abort, probability=1.0)])
    proxy.restart_count()
    restarts = lake.run_job(proxy.url, attempts=1, timeout_seconds=PART_SECONDS)
    injected = proxy.restart_count().injected
    assert injected[FaultKind.RESET, Operation.ABORT_UPLOAD]
    record_and_judge(lake, findings, "parts", injected, [FaultKind.RESET], restarts)


@pytest.mark.faults
def test_a_job_that_is_killed_amid_an_upload(
    large_lake: Callable[[], S3Lake], proxy: FaultProxy, findings: Findings, tmp_path: Path
) -> None:
    """`kill -9` with some parts sent: they are no object, and the next run is exact."""
    lake = large_lake()
    lake.deliver("larger", [lake.put_file("larger", good=24_000, more=lambda: f',"v":"{os.urandom(400).hex()}"')])
    config = tmp_path / "compactor.toml"
    config.write_text(toml_of(lake.settings(proxy.url)))
    proxy.use([Rule(FaultKind.SILENCE, frozenset({Operation.UPLOAD_PART}), probability=1.0)])
    words = ["--engine", NATIVE, "--target-file-bytes", str(lake.target_file_bytes)]
    command = [sys.executable, "-m", "tests.faults.plain_job", str(config), *words]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **lake.server.environment}) as job:
        while not lake.uploads():
            assert job.poll() is None
            time.sleep(0.02)
        job.kill()
    assert job.returncode == -signal.SIGKILL
    proxy.use()
    lake.run_job(proxy.url, attempts=3, timeout_seconds=PART_SECONDS)
    record_and_judge(lake, findings, "parts", proxy.restart_count().injected, [FaultKind.SILENCE], 1)
