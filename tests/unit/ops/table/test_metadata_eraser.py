"""What an erasure does to a table: nothing of its earlier snapshots is left, and no later one lacks a file."""

from collections.abc import Iterable

import pytest

from compactor.core.errors import TableCommitUnknown
from compactor.ops.table.maintainer import Maintainer, UpkeepReport
from compactor.table.catalog import TableChange
from compactor.wiring import table_sink
from tests.support.erasing import deliver, erase
from tests.support.harness import GOOD, DiedError, Harness, sink_of
from tests.support.memory_table import Answer, MemoryTable


@pytest.fixture
def harness() -> Harness:
    """A table with two commits, the second without a person."""
    made = Harness(table={})
    deliver(made)
    made.run_once()
    made.deliver("m4", GOOD)
    made.run_once()
    return made


def unneeded(table: MemoryTable) -> set[str]:
    """The files of metadata that the current snapshot does not name."""
    found = table.folder()
    assert found is not None
    return {each.name for each in found.files} - found.named


def doomed(harness: Harness) -> bool:
    return harness.store.stat(harness.layout.doomed_metadata) is not None


def test_nothing_of_earlier_snapshots_is_left(harness: Harness) -> None:
    """Whatever their age, and without another call."""
    assert erase(harness).left == 0
    assert unneeded(sink_of(harness)) == set()
    assert not doomed(harness)


@pytest.mark.parametrize("call", ["merge_manifests", "expire", "remove"])
def test_a_death_in_between(harness: Harness, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """The next call finds by the record what to remove, although no snapshot names it any more."""

    def die(*_: object) -> None:
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(MemoryTable, call, die)
        with pytest.raises(DiedError):
            erase(harness)
    assert doomed(harness)
    assert erase(harness).left == 0
    assert unneeded(sink_of(harness)) == set()
    assert not doomed(harness)


def test_metadata_of_failed_commits(harness: Harness) -> None:
    """It may have the values as bounds, and a commit without an answer may need it: it is named until it goes."""
    table = sink_of(harness)
    table.now = harness.clock.now
    head = table.head()
    assert head is not None
    table.answers = iter([Answer.UNAVAILABLE]).__next__
    with pytest.raises(TableCommitUnknown):
        table.commit(head, TableChange(head.fence + 1, ()))
    table.answers = lambda: Answer.WELL
    [left] = erase(harness).refused
    assert "of failed commits may contain values: `compactor table maintain` removes them a day later" in left.why
    harness.clock.advance(24 * 3600)
    harness.deliver("m5", GOOD)
    harness.run_once()  # from now on that commit cannot land
    harness.clock.advance(24 * 3600)
    table_sink.maintainer(harness.app()).maintain()
    assert erase(harness).left == 0
    assert unneeded(table) == set()


def test_a_tag(harness: Harness) -> None:
    """Its snapshot stays, and the call says so, until a person has removed it; then all goes."""
    table = sink_of(harness)
    head = table.head()
    assert head is not None
    assert head.snapshot_id is not None
    table.tags.add(head.snapshot_id)
    [left] = erase(harness).refused
    assert "1 branch, tag or property of the table may keep earlier snapshots" in left.why
    kept = table.folder()
    assert kept is not None
    assert kept.named <= {each.name for each in kept.files}
    table.tags.clear()
    assert erase(harness).left == 0
    assert unneeded(table) == set()


def test_a_table_that_another_catalog_has(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may expire there, and the call says so."""
    monkeypatch.setattr(Maintainer, "maintain", lambda _: UpkeepReport("lake.events", exists=True, keeps_all=True))
    [left] = erase(harness).refused
    assert "gc.enabled is false" in left.why


def test_files_that_cannot_be_listed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog has to remove them itself, and the call says so."""
    monkeypatch.setattr(MemoryTable, "folder", lambda *_: None)
    [left] = erase(harness).refused
    assert "cannot be listed" in left.why


@pytest.mark.parametrize("is_late", [False, True], ids=["now", "late"])
def test_a_commit_amid_it(harness: Harness, monkeypatch: pytest.MonkeyPatch, *, is_late: bool) -> None:
    """One that comes right before files are removed has all of its own; one that was sent before cannot land."""
    table, remove = sink_of(harness), MemoryTable.remove
    head = table.head()
    assert head is not None
    number = head.fence + 100
    if is_late:
        table.answers = iter([Answer.LATE]).__next__
        with pytest.raises(Exception, match="did not respond"):
            table.commit(head, TableChange(number, ()))
        table.answers = lambda: Answer.WELL

    def beside(removing: MemoryTable, names: Iterable[str]) -> int:
        names = list(names)
        if is_late:
            assert not removing.land()
        else:
            now = removing.head()
            assert now is not None
            removing.commit(now, TableChange(number, ()))
        return remove(removing, names)

    monkeypatch.setattr(MemoryTable, "remove", beside)
    assert ["of failed commits" in each.why for each in erase(harness).refused] == [True] * is_late
    after = table.head()
    assert after is not None
    table.commit(after, TableChange(number + 1, ()))  # names what it keeps
    found = table.folder()
    assert found is not None
    assert found.named <= {each.name for each in found.files}
