"""Files that were merged are removed once nothing needs them; their rows stay, whatever comes then or meanwhile."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import cycle, product

import pytest
from _pytest.mark import ParameterSet

from compactor.core.documents.changes import Release, Why
from compactor.core.errors import CompactorError, OperatorError
from compactor.ledger.change_log import unfinished
from compactor.ops.table.maintainer import UpkeepReport
from compactor.ops.table.removing import remove_leftovers
from compactor.table.catalog import TableChange
from compactor.wiring import operating, table_sink
from tests.support.erasing import ALICE, ESCAPED, LISTED, OTHERS, PLAIN, erase, holding
from tests.support.harness import GOOD, DiedError, Harness, sink_of
from tests.support.memory_table import Answer
from tests.support.rebuilding import WatchedStore, rebuild
from tests.support.sampling import few_rows
from tests.unit.ops.table.test_merger import Meeting, check, live, merged, rows, rows_of
from tests.unit.table.test_committer import ANSWERS

NAMES = ("m1", "m2", "m3", "m4")
A_DAY = 86_400 + 1


def merged_once(**settings: object) -> Harness:
    """Four manifests whose files were merged to one, a day ago; no snapshot has the files of before."""
    made = Harness(table={"merged_originals": "remove", **settings})
    for name in NAMES:
        made.deliver(name, GOOD)
    made.run_once()
    merged(made)
    made.clock.advance(A_DAY)
    sink_of(made).forget()
    return made


@pytest.fixture
def harness() -> Harness:
    return merged_once()


def maintained(harness: Harness, **options: object) -> UpkeepReport:
    """Upkeep that keeps the current snapshot alone."""
    return table_sink.maintainer(harness.app(), 0, 1).maintain(**options)  # type: ignore[arg-type]


def originals(harness: Harness, names: Iterable[str] = NAMES) -> list[str]:
    """The files of commits that are there."""
    finals = (file.final for name in names for file in harness.commit(name).outputs)
    return [uri for uri in finals if harness.store.stat(uri) is not None]


def removed(harness: Harness) -> Harness:
    """The same, without the files that were merged."""
    assert maintained(harness).removed_originals == 4
    assert originals(harness) == []
    return harness


def test_files_that_were_merged_go(harness: Harness) -> None:
    """By a dry run none; then all, and their rows are verified where they are."""
    before, files = rows(harness), originals(harness)
    sizes = sum(found.size_bytes for uri in files if (found := harness.store.stat(uri)))
    foreseen = maintained(harness, dry_run=True)
    assert (foreseen.removed_originals, foreseen.removed_original_bytes) == (4, sizes)
    assert originals(harness) == files
    report = maintained(harness)
    assert (report.removed_originals, report.removed_original_bytes) == (4, sizes)
    assert originals(harness) == []
    check(harness, before)
    commits = sink_of(harness).commits
    assert maintained(harness).removed_originals == 0
    assert sink_of(harness).commits == commits, "nothing was left to do"
    assert rebuild(harness).rebuilt == ()
    check(harness, before)


def test_what_is_still_needed() -> None:
    """By a snapshot, for a day, by a manifest that is not done, or by an operator: it stays."""
    kept = merged_once(merged_originals="keep")
    assert maintained(kept).removed_originals == 0
    young = Harness(table={"merged_originals": "remove"})
    for name in NAMES:
        young.deliver(name, GOOD)
    young.run_once()
    before = sink_of(young).head()
    merged(young)
    sink_of(young).forget()
    assert maintained(young).removed_originals == 0
    young.clock.advance(A_DAY)
    open_one = young.layout.done(young.commit("m1").key)
    done = young.store.read(open_one)
    young.store.delete([open_one])
    assert maintained(young).removed_originals == 0
    young.store.create(open_one, done)
    assert maintained(young).removed_originals == 4
    assert before is not None
    tagged = Harness(table={"merged_originals": "remove"})
    for name in NAMES:
        tagged.deliver(name, GOOD)
    tagged.run_once()
    head = sink_of(tagged).head()
    assert head is not None
    assert head.snapshot_id is not None
    sink_of(tagged).tags.add(head.snapshot_id)
    merged(tagged)
    tagged.clock.advance(A_DAY)
    assert maintained(tagged).removed_originals == 0
    assert len(originals(tagged)) == 4


def test_a_rebuild_afterwards(harness: Harness) -> None:
    """What is left of the merged file is written anew, as one change with the new files."""
    before = rows(harness)
    removed(harness)
    [file] = live(harness)
    assert [each.manifest_id for each in rebuild(harness, "m2", force=True).rebuilt] == ["m2"]
    assert len(live(harness)) == 2
    assert file not in live(harness)
    check(harness, before)
    sink_of(harness).forget()
    merged(harness)
    assert harness.store.stat(file) is None, "no snapshot has it"
    check(harness, before)
    assert [each.manifest_id for each in rebuild(harness, "m1", "m3", force=True).rebuilt] == ["m1", "m3"]
    check(harness, before)
    harness.clock.advance(A_DAY)
    merged(harness)
    harness.clock.advance(A_DAY)
    sink_of(harness).forget()
    maintained(harness)
    assert len(live(harness)) == 1
    assert originals(harness) == []
    check(harness, before)


def test_a_merge_afterwards(harness: Harness) -> None:
    """The next merged file takes over for the one before, which then goes."""
    removed(harness)
    [first] = live(harness)
    for name in ("m5", "m6", "m7", "m8"):
        harness.deliver(name, GOOD)
    harness.run_once()
    before = rows(harness)
    assert merged(harness).merged_files == 5
    check(harness, before)
    sink_of(harness).forget()
    assert merged(harness).removed_files == 1
    assert harness.store.stat(first) is None
    check(harness, before)
    harness.clock.advance(A_DAY)
    assert maintained(harness).removed_originals == 4
    check(harness, before)
    folders = (harness.layout.changing_folder, harness.layout.changes_folder(Why.RELEASED))
    left = [info.uri for folder in folders for info in harness.store.list(folder)]
    assert len(left) == 1, "records of files that are gone go, too"


def test_a_lost_table(harness: Harness) -> None:
    """Is made again from the ledger alone, with the merged files and all that came later."""
    before = rows(harness)
    removed(harness)
    for change in (
        lambda: None,
        lambda: rebuild(harness, "m2", force=True),
        lambda: (harness.deliver("m5", GOOD), harness.run_once(), merged(harness)),
        lambda: (sink_of(harness).forget(), merged(harness)),
        lambda: (harness.clock.advance(A_DAY), maintained(harness)),
        lambda: rebuild(harness, "m1", "m5", force=True),
    ):
        change()
        before, files = rows(harness), sorted(live(harness))
        sink_of(harness).drop()
        report = table_sink.table_keeper(harness.app()).repair()
        assert not report.needs_operator, report
        assert sorted(live(harness)) == files
        check(harness, before)


def test_a_closed_date(harness: Harness) -> None:
    """Closes without the files that were merged, and its sums stay."""
    before = rows(harness)
    removed(harness)
    harness.clock.advance(40 * 86_400)
    assert operating.closer(harness.app()).close().summarised
    check(harness, before)
    assert rebuild(harness, "m3", force=True).rebuilt
    check(harness, before)


def test_a_merged_file_that_is_lost(harness: Harness) -> None:
    """Is told of for each manifest; a rebuild makes the rows of all of them again, and a job commits them together."""
    before = rows(harness)
    removed(harness)
    [file] = live(harness)
    with pytest.raises(OperatorError, match="its parts were removed"):
        table_sink.merger(harness.app()).undo([file])
    harness.store.delete([file])
    found = harness.verification().discrepancies
    assert {each.manifest_id for each in found} >= set(NAMES)
    rebuild(harness)
    harness.run_once()
    assert len(live(harness)) == 4
    assert len(originals(harness)) == 4
    check(harness, before)


def test_a_merged_file_that_is_damaged(harness: Harness) -> None:
    """`verify` says so, and how its rows come back; a manifest alone waits, with the reason."""
    before = rows(harness)
    removed(harness)
    [file] = live(harness)
    whole = harness.store.read(file)
    harness.store.put(file, whole[:-5])
    assert any("in " + file in each.found for each in harness.verification().discrepancies)
    report = rebuild(harness, "m2")
    assert len(report.rebuilt) == 0
    assert "an unreadable merged file" in str(report)
    for name in ("m1", "m3", "m4"):
        rebuild(harness, name)
    harness.run_once()
    check(harness, before)


class BeforeRecord:
    """A store that lets others take a turn before a record of one folder is created, once."""

    def __init__(self, inner: object, folder: str, what: Callable[[], object]) -> None:
        self._inner, self._folder, self._what, self._has_met = inner, folder, what, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def create(self, uri: str, data: bytes) -> bool:
        if not self._has_met and f"/{self._folder}/" in uri:
            self._has_met = True
            self._what()
        return self._inner.create(uri, data)  # type: ignore[attr-defined,no-any-return]


def test_a_rebuild_that_has_decided(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """On putting other files back that were merged: a batch of upkeep comes first, and it has to decide again."""
    before = rows(harness)
    monkeypatch.setattr(f"{remove_leftovers.__module__}._are_over", lambda *_: True)  # as they were when upkeep looked
    store = BeforeRecord(harness.store, "table/batches", lambda: maintained(harness))
    assert rebuild(harness, "m2", force=True, store=store).rebuilt  # type: ignore[arg-type]
    assert originals(harness, ("m1", "m3", "m4")) == []
    check(harness, before)


def test_a_merge_that_is_written(harness: Harness) -> None:
    """From a merged file whose parts may go meanwhile: it is written once more, and is on record as such."""
    harness.deliver("m5", GOOD + GOOD)
    harness.run_once()
    before = rows(harness)
    store = BeforeRecord(harness.store, f"changes/{Why.MERGED}", lambda: maintained(harness))
    assert table_sink.merger(harness.app(store=store)).merge().made_files == 1  # type: ignore[arg-type]
    assert originals(harness) == []
    sink_of(harness).forget()
    merged(harness)
    check(harness, before)
    assert rebuild(harness, "m2", force=True).rebuilt
    check(harness, before)


DEATHS = 16
AFTER = ("removes", "rebuilds", "merges")


def kills() -> Iterator[ParameterSet]:
    """Of each change, one with any answers and anything afterwards is for `make test`."""
    for (number, answers), (at, after), die_at in product(enumerate(ANSWERS), enumerate(AFTER), range(DEATHS)):
        is_usual = (number, at) == (die_at % len(ANSWERS), die_at % len(AFTER))
        name = f"{'-'.join(answer.value for answer in answers)}-{after}-{die_at}"
        yield pytest.param(answers, after, die_at, marks=() if is_usual else pytest.mark.full, id=name)


@pytest.mark.parametrize(("answers", "after", "die_at"), list(kills()))
def test_a_kill_at_every_change(answers: tuple[Answer, ...], after: str, die_at: int) -> None:
    """Of the state, the output and the catalog: rows stay, the next call ends the same, and a rebuild goes on."""
    harness = merged_once()
    before = rows(harness)
    sink_of(harness).answers = cycle(answers).__next__
    store = WatchedStore(harness.store, die_at)
    with suppress(DiedError, CompactorError):
        table_sink.maintainer(harness.app(store=store), 0, 1).maintain()
    sink_of(harness).land()
    sink_of(harness).answers = lambda: Answer.WELL
    if after == "rebuilds":
        assert rebuild(harness, "m2", force=True).rebuilt, f"died at change {die_at}"
    elif after == "merges":
        harness.deliver("m5", GOOD + GOOD)
        harness.run_once()
        before = rows(harness)
        merged(harness)
    check(harness, before)
    harness.clock.advance(A_DAY)
    sink_of(harness).forget()
    maintained(harness)
    if after != "rebuilds":
        assert originals(harness) == [], f"died at change {die_at}"
    check(harness, before)
    merged(harness)  # removes merged files that nothing needs, and what is on record of them
    left = unfinished(harness.app().state, Release)
    assert {each.file.uri for each in left} <= {*live(harness)}


MEANWHILE: dict[str, Callable[[Harness], object]] = {
    "maintains": maintained,
    "merges": lambda harness: (harness.deliver("m9", GOOD + GOOD), harness.run_once(), merged(harness)),
    "rebuilds": lambda harness: rebuild(harness, "m2", force=True),
    "undoes": lambda harness: table_sink.merger(harness.app()).undo(live(harness)),
    "commits": lambda harness: (harness.deliver("m9", GOOD), harness.run_once()),
    "expires": lambda harness: sink_of(harness).forget(),
    "rewrites": lambda harness: sink_of(harness).rewrite(),
}


@pytest.mark.parametrize(("what", "at"), few_rows(product(MEANWHILE, range(1, 5)), 9))
def test_others_meanwhile(what: str, at: int) -> None:
    """Another upkeep, a merger, a rebuild, an operator, a job and strangers: no row is lost, or there twice."""
    harness = merged_once()
    before = rows(harness)

    def others() -> None:
        with suppress(OperatorError):
            MEANWHILE[what](harness)

    store = Meeting(harness.store, at, others)
    with suppress(CompactorError):
        table_sink.maintainer(harness.app(store=store), 0, 1).maintain()  # type: ignore[arg-type]
    if any("/m9-" in info.uri for info in harness.store.list(harness.layout.output + "/")):
        before += rows_of(harness, "m9")
    check(harness, before)
    assert rebuild(harness, "m3", force=True).rebuilt
    check(harness, before)
    harness.clock.advance(A_DAY)
    merged(harness)
    sink_of(harness).forget()
    harness.clock.advance(A_DAY)
    maintained(harness)
    check(harness, before)


def test_what_is_forgotten(harness: Harness) -> None:
    """Of rows that only a merged file has: it is written anew without them, and no file holds the values any more."""
    harness.deliver("m5", PLAIN, ESCAPED)
    harness.deliver("m6", LISTED)
    harness.deliver("m7", OTHERS)
    harness.run_once()
    merged(harness)
    harness.clock.advance(A_DAY)
    sink_of(harness).forget()
    maintained(harness)
    assert originals(harness, ("m5", "m6", "m7")) == []
    kept = Counter({row: many for row, many in rows(harness).items() if ALICE not in row or f"{ALICE}-not" in row})
    report = erase(harness)
    assert (report.failed, len(report.erased)) == ((), 2)
    assert holding(harness) == []
    assert rows(harness) == kept
    assert harness.verification().discrepancies == []
    assert not table_sink.table_keeper(harness.app()).compare().needs_operator


def test_a_trace(harness: Harness) -> None:
    """Says that the rows of a file are in a merged one, and that its own file is removed."""
    removed(harness)
    [file] = live(harness)
    found = operating.tracer(harness.app()).trace_manifest("m1").table
    assert found is not None
    assert (found.merged_files, found.removed_originals) == ((file,), 1)
    assert "its rows are in 1 merged file, and 1 file of its own removed" in found.meaning


@pytest.mark.parametrize("damaged", ["outcome", "released", "refused"])
def test_a_table_that_is_made_again_never_does_without_rows_that_a_merged_file_alone_has(damaged: str) -> None:
    """Trouble with its batch stops the call, so that the next one gets them; the batch is not passed over."""
    harness = removed(merged_once())
    before, [merged_file], commit = rows(harness), live(harness), harness.commit("m1")
    record = harness.layout.outcome(commit.key)
    if damaged == "released":
        record = next(
            info.uri for info in harness.store.list(f"{harness.layout.changes_folder(Why.RELEASED)}{commit.date}/")
        )
    good, exists = harness.store.read(record), sink_of(harness).exists
    if damaged == "refused":
        sink_of(harness).exists = lambda uri: uri != merged_file
    else:
        harness.store.put(record, b"{")
    sink_of(harness).drop()
    with pytest.raises(CompactorError):
        table_sink.table_keeper(harness.app()).repair()
    harness.store.put(record, good)
    sink_of(harness).exists = exists
    table_sink.table_keeper(harness.app()).repair()
    check(harness, before)


def test_a_merged_file_that_alone_has_rows_stays_whatever_the_table_has(harness: Harness) -> None:
    """A table that lost it lists it nowhere; it goes once its rows are elsewhere."""
    removed(harness)
    before, [merged_file] = rows(harness), live(harness)
    sink_of(harness).drop()
    for number in range(1, table_sink.committer(harness.app()).batches.recorded() + 1):  # made again with nothing in it
        head = sink_of(harness).create(harness.layout.table_owner, harness.app().registry.latest())
        sink_of(harness).commit(head, TableChange(number, ()))
    assert live(harness) == []
    assert remove_leftovers(table_sink.committer(harness.app())) == (0, 0)
    record = harness.layout.change(Why.MERGED, "", harness.layout.merge_of(merged_file))
    good = harness.store.read(record)
    harness.store.put(record, b"{")
    assert remove_leftovers(table_sink.committer(harness.app())) == (0, 0)
    harness.store.put(record, good)
    assert harness.store.stat(merged_file) is not None
    sink_of(harness).drop()
    table_sink.table_keeper(harness.app()).repair()
    check(harness, before)


def test_a_merge_whose_rows_were_all_replaced_may_be_passed_over(harness: Harness) -> None:
    """Its manifests have later generations, which the table gets by later batches."""
    removed(harness)
    committer = table_sink.committer(harness.app(), replays=True)
    [batch] = [found for number in range(1, 9) if (found := committer.batches.batch(number)) and found.merge]
    assert committer.changes.has_moved_rows(batch)
    for name in NAMES:
        assert committer.changes.has_moved_rows(batch)
        harness.store.put(harness.layout.outcome(harness.commit(name).key, 2), b"{}")
    assert not committer.changes.has_moved_rows(batch)
