"""The process dies by SIGKILL right after each step, and the next one puts everything right."""

import signal
import sys

import pytest

from compactor.steps import Step
from tests.faults.conftest import PATIENCE_SECONDS, Lake

OF_A_MANIFEST = [step for step in Step if step not in {Step.CLAIMED, Step.PLANNED}]


def run_plain(lake: Lake, *arguments: str) -> int:
    process = lake.start_process([sys.executable, "-m", "tests.faults.plain_job", str(lake.config), *arguments])
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode in {0, 1, 3, -signal.SIGKILL}, output
    return process.returncode


@pytest.mark.parametrize("step", OF_A_MANIFEST)
def test_a_death_at_any_step_loses_and_doubles_nothing(lake: Lake, step: Step) -> None:
    """Killed at a step, killed again there in the next run, then left alone: every line is there once."""
    lake.add_manifest("one")
    lake.add_manifest("two")
    assert run_plain(lake, "--die-at", step) == -signal.SIGKILL
    run_plain(lake, "--die-at", step)  # recovery may have less to do than to reach this step again
    assert run_plain(lake) == 0
    lake.assert_exact()


def test_a_manifest_that_kills_its_driver_is_set_aside_and_its_neighbours_commit(lake: Lake) -> None:
    """The first death may be anybody's fault; after `max_attempts` deaths alone, the manifest is a dead letter."""
    lake.settings["stream"]["max_attempts"] = 2
    lake.write_settings()
    lake.add_manifest("good-1")
    lake.add_manifest("good-2")
    expected = sorted(lake.lines)
    lake.add_manifest("killer")
    deaths = 0
    while run_plain(lake, "--die-at", Step.INSPECTED, "--only", "killer") == -signal.SIGKILL:
        deaths += 1
        assert deaths <= 3
    assert deaths in {2, 3}
    assert lake.output_lines() == expected
    assert "retries_exhausted" in (lake.state / "failed" / "killer.reason.json").read_text()
    assert run_plain(lake) == 0, "the next run does not trip over it again"
