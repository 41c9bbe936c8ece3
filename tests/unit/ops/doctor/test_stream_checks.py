"""The check of a stream of Kinesis."""

from pathlib import Path

import pytest

from compactor.ops.doctor.checkup import Environment, checks_of
from compactor.ops.doctor.findings import run_checks
from compactor.ops.doctor.service_checks import try_stream
from compactor.settings.settings import load_settings
from tests.support.memory_kinesis import STREAM, MemoryKinesis
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.settings_files import write_settings


def kinesis() -> MemoryKinesis:
    found = MemoryKinesis(ManualClock())
    found.create(shards=2)
    return found


def test_a_stream() -> None:
    """One that is there, and one that is not."""
    [found, kept] = try_stream(kinesis().log, str(STREAM), wait_seconds=720)
    assert (found.state, kept.state, found.found) == (
        "ok",
        "ok",
        "kinesis://main/events: can describe, list and read 2 shards",
    )
    [found] = try_stream(MemoryKinesis(ManualClock()).log, str(STREAM), wait_seconds=720)
    assert (found.state, found.next_move) == ("fault", "create it, or correct input.allowed_prefixes")
    [found, late] = try_stream(kinesis().log, str(STREAM), wait_seconds=8 * 3600)
    assert (late.state, late.next_move) == ("warning", "raise the retention of stream events")


def test_the_streams_of_settings_are_tried(tmp_path: Path) -> None:
    """A stream as planning reads it; all of a source is left to plans."""
    prefixes = ["kinesis://main/events", "kinesis://main/other", "kinesis://main"]
    given = {"input": {"allowed_prefixes": prefixes}, "kinesis": {"sources": {"main": {}}}}
    settings, log = load_settings(write_settings(tmp_path, **given), {}), kinesis()
    env = Environment(
        account=lambda: pytest.fail("nothing else is on AWS"),
        store=MemoryStore(),
        clock=ManualClock(),
        listed=lambda _: None,
        trial_id="1",
        columns=lambda _: {},
        kinesis=lambda _: log.log(),
        kafka=lambda _: pytest.fail("no topic is named"),
        ask_claims=lambda _: None,
    )
    checks = [each for each in checks_of(env, settings, "") if each.name == "input"]
    assert [each.state for each in run_checks(checks, lambda: True)] == ["ok", "ok", "fault", "skipped"]
    log.refusals = ["AccessDeniedException"]
    [refused, *_] = run_checks(checks, lambda: True)
    assert (refused.state, refused.next_move) == ("fault", "allow it, or set a different one in the settings")
