"""Promises of `compactor table merge`: each row stays there once, whatever dies, changes or is refused meanwhile."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, product

import pytest
from _pytest.mark import ParameterSet

from compactor.core.documents.changes import Why
from compactor.core.errors import CompactorError, OperatorError, RecordUnreadable, SettingsError, TableConflict
from compactor.core.ports import ObjectWriter
from compactor.ops.table import merger as merger_module
from compactor.ops.table.merger import TRIES, MergeReport
from compactor.ops.table.removing import remove_leftovers
from compactor.wiring import operating, table_sink
from tests.support.harness import GOOD, DiedError, Harness, sink_of
from tests.support.memory_table import Answer
from tests.support.rebuilding import WatchedStore, rebuild
from tests.support.sampling import few_rows
from tests.unit.table.test_committer import ANSWERS

NAMES = ("m1", "m2", "m3", "m4")


@pytest.fixture
def harness() -> Harness:
    """Four manifests, each of one small file of two rows."""
    return compacted()


def compacted() -> Harness:
    made = Harness(table={})
    for name in NAMES:
        made.deliver(name, GOOD)
    made.run_once()
    return made


def merged(harness: Harness, **options: object) -> MergeReport:
    return table_sink.merger(harness.app()).merge(**options)  # type: ignore[arg-type]


def live(harness: Harness) -> list[str]:
    return [file.uri for file in sink_of(harness).live_files()]


def rows(harness: Harness) -> Counter[str]:
    """The rows that readers of the table find."""
    return Counter(str(sorted(row.items())) for uri in live(harness) for row in harness.table(uri))


def check(harness: Harness, before: Counter[str]) -> None:
    """The table agrees with the ledger, and has these rows."""
    report = table_sink.table_keeper(harness.app()).compare()
    assert not report.needs_operator, report
    assert harness.verification().discrepancies == []
    assert rows(harness) == before


def test_a_merge(harness: Harness) -> None:
    """Many small files become one; the files of commits stay where they are, and a second call has nothing to do."""
    before, files = rows(harness), live(harness)
    foreseen = merged(harness, dry_run=True)
    assert (foreseen.merged_files, foreseen.made_files, live(harness)) == (4, 1, files)
    report = merged(harness)
    assert (report.merged_files, report.made_files, report.not_merged) == (4, 1, ())
    assert (report.before.files, report.after.files, report.after.hit_rate) == (4, 1, 1.0)
    assert all(harness.store.stat(uri) for uri in files)
    check(harness, before)
    assert merged(harness).merged_files == 0
    assert merged(harness, dates=["2020-01-01"]).merged_files == 0
    assert sink_of(harness).commits == 2


def test_late_files_are_merged_again(harness: Harness) -> None:
    """With the merged file, once they make it half as large again; the one before goes when no snapshot has it."""
    merged(harness)
    [first] = live(harness)
    for name in ("m5", "m6", "m7", "m8"):
        harness.deliver(name, GOOD)
    harness.run_once()
    before = rows(harness)
    report = merged(harness)
    assert (report.merged_files, report.removed_files) == (5, 0)
    assert harness.store.stat(first) is not None
    check(harness, before)
    sink_of(harness).forget()
    assert merged(harness).removed_files == 1
    assert harness.store.stat(first) is None
    check(harness, before)


def test_files_of_another_merger(harness: Harness) -> None:
    """Stay as long as the table may get them: until a batch behind their base has replaced files."""
    uri = harness.layout.merged_file(f"{1:08d}-other", 1)
    harness.store.put(uri, b"")
    assert remove_leftovers(table_sink.committer(harness.app())) == (0, 0)
    assert harness.store.stat(uri) is not None
    assert merged(harness).removed_files == 1
    assert harness.store.stat(uri) is None


def test_no_table() -> None:
    """Plain files are not merged, with the reason; nor is there anything to do before the first batch."""
    with pytest.raises(SettingsError, match="only a table replaces them in one step"):
        table_sink.merger(Harness().app())
    assert not merged(Harness(table={})).exists


def test_a_rebuild_of_merged_rows(harness: Harness) -> None:
    """Takes the merged file apart; the next merge has the new files."""
    before = rows(harness)
    merged(harness)
    assert [each.manifest_id for each in rebuild(harness, "m2", force=True).rebuilt] == ["m2"]
    assert len(live(harness)) == 4
    check(harness, before)
    assert merged(harness).merged_files == 4
    check(harness, before)


def test_a_lost_part(harness: Harness) -> None:
    """Its rows are still in the table; a rebuild makes the file again, and takes the merged one apart."""
    before, [gone, *_] = rows(harness), live(harness)
    merged(harness)
    harness.store.delete([gone])
    assert rows(harness) == before
    [lost] = [name for name in NAMES if f"/{name}-" in gone]
    assert [each.manifest_id for each in rebuild(harness).rebuilt] == [lost]
    assert len(live(harness)) == 4
    check(harness, before)


def test_a_closed_date(harness: Harness) -> None:
    """Its sums are those of the files that were merged, before and after."""
    before = rows(harness)
    harness.clock.advance(40 * 86_400)
    assert operating.closer(harness.app()).close().summarised
    assert merged(harness).made_files == 1
    report = operating.verifier(harness.app()).verify_all()
    assert (report.closed_dates, report.discrepancies) == (1, [])
    assert report.table is not None
    assert (report.table.files, report.table.rows) == (1, 8)
    check(harness, before)


def test_a_damaged_file(harness: Harness) -> None:
    """It alone stays as it is, with the reason; a rebuild of it lets it be merged, too."""
    before = rows(harness)
    damaged = live(harness)[0]
    harness.store.put(damaged, b"PAR1")
    report = merged(harness)
    assert (report.merged_files, report.made_files, len(report.not_merged)) == (3, 1, 1)
    assert (report.not_merged[0].where, damaged in report.not_merged[0].why) == (damaged, True)
    [broken] = [name for name in NAMES if f"/{name}-" in damaged]
    assert rebuild(harness, broken).rebuilt
    check(harness, before)
    harness.deliver("m5", GOOD)
    harness.run_once()
    assert merged(harness).merged_files == 3
    check(harness, before + rows_of(harness, "m5"))


def test_damaged_rows(harness: Harness) -> None:
    """A file whose footer is whole and whose pages are not keeps its group as it is."""
    uri = live(harness)[0]
    data = harness.store.read(uri)
    harness.store.put(uri, data[:4] + bytes(100) + data[104:])
    report = merged(harness)
    assert (report.made_files, len(report.not_merged)) == (0, 1)
    assert "expected a complete Parquet file" in report.not_merged[0].why
    assert list(harness.store.list(harness.layout.merged_folder)) == []


def test_rows_that_are_not_those_of_the_ledger(harness: Harness) -> None:
    """A file that was replaced by one with fewer rows is not merged: the footers do not add up."""
    first = live(harness)[0]
    other = Harness()
    other.deliver("m", b'{"id": "1"}\n')
    other.run_once()
    [short] = [info.uri for info in other.store.list("/w/output/")]
    harness.store.put(first, other.store.read(short))
    report = merged(harness)
    assert (report.made_files, report.not_merged[0].where) == (1, first)
    assert "7 rows; expected 8" in report.not_merged[0].why
    assert live(harness)[0] == first


def test_a_merged_file_that_is_refused_for_ever(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told of, and stops neither the job nor the merges of other partitions."""
    monkeypatch.setattr(merger_module, "MERGED_AT_ONCE_FILES", 2)
    table, before = sink_of(harness), rows(harness)
    table.exists = lambda uri: "_table/merged" not in uri
    report = merged(harness)
    assert (report.made_files, len(report.not_merged)) == (0, 1)
    assert "expected the files of the change" in report.not_merged[0].why
    assert len(list(harness.store.list(harness.layout.merged_folder))) == 0, "no batch that is to come has them"
    harness.deliver("m5", GOOD)
    assert harness.run_once().committed == 1
    table.exists = lambda _: True
    assert merged(harness).made_files == 1
    assert rows(harness) == before + rows_of(harness, "m5")


def rows_of(harness: Harness, name: str) -> Counter[str]:
    files = [file.final for file in harness.commit(name).outputs]
    return Counter(str(sorted(row.items())) for uri in files for row in harness.table(uri))


def test_undoing(harness: Harness) -> None:
    """The parts take the place of a merged file again; of any other file, it is refused."""
    before = rows(harness)
    merged(harness)
    [file] = live(harness)
    report = table_sink.merger(harness.app()).undo([file])
    assert (report.taken_apart, report.after.files) == (1, 4)
    check(harness, before)
    with pytest.raises(OperatorError, match="expected a merged file"):
        table_sink.merger(harness.app()).undo([file])


def test_a_lost_table(harness: Harness) -> None:
    """Is made again from the ledger with its merged files, or with what was merged if they are gone."""
    before = rows(harness)
    merged(harness)
    [file] = live(harness)
    for is_gone in (False, True):
        if is_gone:
            harness.store.delete([file])
        sink_of(harness).drop()
        assert not table_sink.table_keeper(harness.app()).repair().needs_operator
        assert (file in live(harness)) is not is_gone
        check(harness, before)


def kills() -> Iterator[ParameterSet]:
    """Of each change, one with any answers is for `make test`."""
    for (number, answers), die_at in product(enumerate(ANSWERS), range(12)):
        name = f"{'-'.join(answer.value for answer in answers)}-{die_at}"
        marks = () if number == die_at % len(ANSWERS) else pytest.mark.full
        yield pytest.param(answers, die_at, marks=marks, id=name)


@pytest.mark.parametrize(("answers", "die_at"), list(kills()))
def test_a_kill_at_every_change(answers: tuple[Answer, ...], die_at: int) -> None:
    """Whatever the catalog answers: the next call ends the same, and no file is left that nothing needs."""
    harness = compacted()
    before = rows(harness)
    sink_of(harness).answers = cycle(answers).__next__
    store = WatchedStore(harness.store, die_at)
    with suppress(DiedError, CompactorError):
        table_sink.merger(harness.app(store=store)).merge()
    sink_of(harness).land()
    sink_of(harness).answers = lambda: Answer.WELL
    merged(harness)
    check(harness, before)
    assert len(live(harness)) == 1
    sink_of(harness).forget()
    merged(harness)
    left = [info.uri for info in harness.store.list(harness.layout.merged_folder)]
    assert left == live(harness), f"died at change {die_at}"
    check(harness, before)


class Meeting:
    """A store that lets others take a turn before its nth write, once."""

    def __init__(self, inner: object, at: int, what: Callable[[], object]) -> None:
        self._inner, self._left, self._what = inner, at, what

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create(self, uri: str, data: bytes) -> bool:
        self._meet()
        return self._inner.create(uri, data)  # type: ignore[attr-defined,no-any-return]

    @contextlib.contextmanager
    def writer(self, uri: str) -> Iterator[ObjectWriter]:
        self._meet()
        with self._inner.writer(uri) as writer:  # type: ignore[attr-defined]
            yield writer
        self._meet()

    def _meet(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._what()


OTHERS: dict[str, Callable[[Harness], object]] = {
    "merges": merged,
    "rebuilds": lambda harness: rebuild(harness, "m2", force=True),
    "commits": lambda harness: (harness.deliver("m9", GOOD), harness.run_once()),
    "maintains": lambda harness: table_sink.maintainer(harness.app(), 0, 1).maintain(),
    "rewrites": lambda harness: sink_of(harness).rewrite(),
    "expires": lambda harness: sink_of(harness).forget(),
}


@pytest.mark.parametrize(("what", "at"), few_rows(product(OTHERS, range(1, 6)), 10))
def test_others_meanwhile(what: str, at: int) -> None:
    """Another merger, a rebuild, a job, upkeep and strangers: the table has each row once, and is merged in the end."""
    harness = compacted()
    before = rows(harness)
    store = Meeting(harness.store, at, lambda: OTHERS[what](harness))
    with suppress(CompactorError):
        table_sink.merger(harness.app(store=store)).merge()  # type: ignore[arg-type]
    if any("/m9-" in info.uri for info in harness.store.list(harness.layout.output + "/")):
        before += rows_of(harness, "m9")
    check(harness, before)
    merged(harness)
    check(harness, before)
    assert len(live(harness)) <= 2
    sink_of(harness).forget()
    merged(harness)
    left = [info.uri for info in harness.store.list(harness.layout.merged_folder)]
    assert set(left) <= set(live(harness))


def test_files_that_are_replaced_all_the_time(harness: Harness) -> None:
    """It gives up in the end, says so, and leaves nothing behind."""
    before = rows(harness)
    calls = 0

    class Busy(Meeting):
        def create(self, uri: str, data: bytes) -> bool:
            nonlocal calls
            made = super().create(uri, data)
            if f"/changes/{Why.MERGED}/" in uri:
                calls += 1
                rebuild(harness, "m2", force=True)
            return made

    store = Busy(harness.store, 0, lambda: None)
    with pytest.raises(TableConflict, match="keep being replaced"):
        table_sink.merger(harness.app(store=store)).merge()  # type: ignore[arg-type]
    assert calls == TRIES
    assert list(harness.store.list(harness.layout.merged_folder)) == []
    check(harness, before)


def test_a_damaged_merge_holds_back_no_other_manifest(harness: Harness) -> None:
    """One that was never merged is rebuilt beside it; one whose rows may be in it waits."""
    merged(harness)
    [merged_file] = live(harness)
    for name in ("x1", "x2"):
        harness.deliver(name, GOOD)
    harness.run_once()
    before, record = rows(harness), harness.layout.change(Why.MERGED, "", harness.layout.merge_of(merged_file))
    good = harness.store.read(record)
    harness.store.put(record, b"{")
    harness.store.delete([file.final for file in harness.commit("x1").outputs])
    assert [each.manifest_id for each in rebuild(harness).rebuilt] == ["x1"]
    assert list(table_sink.committer(harness.app()).batches.refused.all_held()) == []
    harness.store.put(record, good)
    check(harness, before)


def test_a_damaged_merge_that_may_have_rows_of_a_batch_on_record(harness: Harness) -> None:
    """Its file may have to be taken apart, so nothing is changed until that is known."""
    merged(harness)
    listed = list(sink_of(harness).live_files())
    record = harness.layout.change(Why.MERGED, "", harness.layout.merge_of(listed[0].uri))
    harness.store.delete([file.final for file in harness.commit("m1").outputs])
    assert [each.manifest_id for each in rebuild(harness).rebuilt] == ["m1"]
    committer = table_sink.committer(harness.app())
    batch = committer.batches.batch(committer.batches.recorded())
    assert batch is not None
    assert [each.generation for each in batch.manifests] == [2]
    assert listed[0].uri in committer.changes.of(batch, 1, lambda: listed).removed
    harness.store.put(record, b"{")
    with pytest.raises(RecordUnreadable, match="changes/merged"):
        committer.changes.of(batch, 1, lambda: listed)
