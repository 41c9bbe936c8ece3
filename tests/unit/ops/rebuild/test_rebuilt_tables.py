"""A rebuild where a table lists the files: its readers find each row once, before, in between and after."""

from contextlib import suppress

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.errors import CompactorError
from compactor.wiring import table_sink
from tests.support.harness import GOOD, DiedError, Harness, dying_at, sink_of
from tests.support.memory_table import Answer
from tests.support.rebuilding import rebuild

STEPS = (CrashPoint.DECIDED, CrashPoint.PUBLISHED_ONE, CrashPoint.PUBLISHED, CrashPoint.DONE, CrashPoint.UNSTAGED)


def compacted() -> Harness:
    harness = Harness(table={})
    harness.deliver("m1", GOOD)
    harness.deliver("m2", GOOD)
    harness.run_once()
    return harness


def live(harness: Harness) -> list[str]:
    return sorted(file.uri for file in sink_of(harness).live_files())


def check(harness: Harness, before: list[str]) -> None:
    """The table has the files of the valid commits, none of which had these names."""
    files = sorted(file.final for name in ("m1", "m2") for file in harness.commit(name).outputs)
    assert live(harness) == files
    assert {info.uri for info in harness.store.list(harness.layout.output + "/")} == set(files)
    assert not {file.final for file in harness.commit("m1").outputs} & set(before)
    assert harness.verification().discrepancies == []
    assert not table_sink.table_keeper(harness.app()).compare().needs_operator


def test_new_names_in_one_change() -> None:
    """The files change places in one commit; those of before go after it."""
    harness = compacted()
    before = live(harness)
    deleted = list[bool]()
    sink_of(harness).on_change = lambda _: deleted.append(any(harness.store.stat(uri) is None for uri in before))
    assert rebuild(harness, "m1", force=True).failed == ()
    assert deleted == [False]
    check(harness, before)


def test_a_file_that_is_gone() -> None:
    """Its rows are made again under another name."""
    harness = compacted()
    before = live(harness)
    harness.store.delete([harness.commit("m1").outputs[0].final])
    assert [each.generation for each in rebuild(harness, "m1").rebuilt] == [2]
    check(harness, before)


@pytest.mark.parametrize("step", STEPS)
def test_a_death_at_each_step(step: CrashPoint) -> None:
    """The job, or another rebuild, carries it to the end."""
    harness = compacted()
    before = live(harness)
    with suppress(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(step))
    harness.clock.advance(3600)
    harness.run_once()
    check(harness, before)


def test_an_answer_that_does_not_come() -> None:
    """The rebuild says that it is not done; the next one goes on."""
    harness = compacted()
    before = live(harness)
    sink_of(harness).answers = lambda: Answer.LATE
    with suppress(CompactorError):
        assert rebuild(harness, "m1", force=True).failed
    sink_of(harness).answers = lambda: Answer.WELL
    assert sink_of(harness).land()
    while sink_of(harness).land():
        pass
    harness.run_once()
    check(harness, before)
