"""Files of rows that are written in place for a table: none is copied, lost or doubled, and only orphans go."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from compactor.adapters.listed_manifests import ListedManifests
from compactor.adapters.local.native.threads import ThreadBinWorkers
from compactor.core.crash_points import CrashPoint
from compactor.core.errors import AccessError, CompactorError, StagingLost
from compactor.core.layout import ManifestKey
from compactor.engines.parquet_files import parquet_facts
from compactor.ledger.table.orphans import Fate, InPlaceFiles
from compactor.upkeep.cleaner import CleaningReport, Kind
from compactor.wiring import engines, operating, streaming
from tests.support.erasing import check_tidy, deliver, erase, holding
from tests.support.extras import NATIVE
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at, sink_of
from tests.support.interleaving import interleave
from tests.support.rebuilding import rebuild
from tests.unit.job.test_table_sink import STEPS, check_table

NATIVE.need()

M1 = ManifestKey(DAY, "m1")
LATER = timedelta(days=2).total_seconds()


def in_place(**more: dict[str, object]) -> Harness:
    return Harness(table={}, in_place=True, **more)  # type: ignore[arg-type]


def outputs(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.output + "/")]


def clean(harness: Harness, *, all_orphans: bool = True, dry_run: bool = False) -> CleaningReport:
    return operating.cleaner(harness.app()).clean(archive_days=30, all_orphans=all_orphans, dry_run=dry_run)


def orphan(harness: Harness, key: ManifestKey = M1, attempt: int = 9, generation: int = 1) -> str:
    """What an attempt that was held up writes, whatever was decided meanwhile."""
    uri = harness.layout.in_place(key, attempt, generation) + "00000.snappy.parquet"
    harness.store.put(uri, b"rows that count nowhere")
    return uri


def run_to(harness: Harness, on_crash_point: Callable[[CrashPoint, str], None]) -> None:
    """A driver that dies or is held up on its way."""
    source = ListedManifests(harness.store, harness.layout.manifests_folder)
    with suppress(DiedError):
        streaming.service_on(harness.app(on_crash_point=on_crash_point), harness.engine(), source).run(once=True)


def settle(harness: Harness) -> None:
    """Two more drivers, each an hour later."""
    for _ in range(2):
        harness.clock.advance(3600)
        harness.run_once()


def test_nothing_is_copied() -> None:
    """The commit names files of rows where they were written; rejects are staged and copied as ever."""
    harness = in_place()
    store = FaultyStore(harness.store)
    harness.deliver("m1", GOOD, FLAWED)
    harness.deliver("m2", b"no json\n")
    assert harness.run_once(store=store, engine=harness.engine(store)).committed == 2
    commit = harness.commit("m1")
    assert all(file.is_in_place for file in commit.outputs)
    assert [file.final for file in commit.outputs] == outputs(harness)
    assert all(uri.startswith(harness.layout.in_place(M1, commit.attempt)) for uri in outputs(harness))
    assert store.calls["copy"] == 2 + 2, "the rejects of each, and each manifest for the archive"
    check_table(harness, "m1")
    harness.check_exact()


def test_the_native_engine_samples_in_staging(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it only measures is no file of the output; what it writes again for new keys is an orphan, and goes."""
    monkeypatch.setattr("compactor.engines.native.engine.SAMPLE_BYTES", 2_000)
    harness = in_place()
    harness.deliver("m1", GOOD * 50, GOOD * 50)
    written, found = list[set[str]](), list[int]()

    def on_crash_point(step: CrashPoint, _manifest_id: str) -> None:
        if step is CrashPoint.VERIFIED:
            written.append({uri.partition("/1/")[2] for uri in outputs(harness)})
            sampled = [info.uri for info in harness.store.list(harness.layout.staging_of("m1")) if "sample" in info.uri]
            found.append(len(sampled))

    app = harness.app(on_crash_point=on_crash_point)
    streaming.service_on(
        app,
        engines.native_engine(app, ThreadBinWorkers(harness.store)),
        ListedManifests(harness.store, harness.layout.manifests_folder),
    ).run(once=True)
    assert written == [{file.final.partition("/1/")[2] for file in harness.commit("m1").outputs}]
    assert all(name.endswith(".snappy.parquet") for name in written[0])
    assert found[0] > 0, "else there was no sample"
    check_table(harness, "m1")
    harness.check_exact()


def test_files_that_were_staged_are_copied() -> None:
    """An engine may stage although it could write in place."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    engine = harness.engine()
    stage = engine.stage
    engine.stage = lambda request: stage(replace(request, place=""))  # type: ignore[method-assign]
    harness.run_once(engine=engine)
    assert not any(file.is_in_place for file in harness.commit("m1").outputs)
    check_table(harness, "m1")
    harness.check_exact()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("step", STEPS)
def test_death_and_delay_at_every_step(step: CrashPoint) -> None:
    """Others do everything meanwhile, and orphans of any age are deleted: each row is in the table once."""

    def world() -> Harness:
        made = in_place()
        made.deliver("m1", GOOD, FLAWED)
        made.deliver("m2", GOOD)
        return made

    def others(made: Harness) -> None:
        for _ in range(2):
            made.clock.advance(LATER)
            with suppress(CompactorError):
                made.run_once()
            clean(made)

    def check(made: Harness) -> None:
        check_table(made, "m1", "m2")
        made.check_exact()
        assert made.verification().orphans == 0

    interleave(step, world, run_to, others, check)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("method", ["create", "copy", "put", "delete", "list", "stat"])
def test_each_lost_answer(method: str, every: int) -> None:
    """Of any call of the store, at any time: it costs an attempt at most."""
    for number in range(1, 100, every):
        harness = in_place()
        harness.deliver("m1", GOOD, FLAWED)
        store = FaultyStore(harness.store)
        store.lose_answer_at(number, method)
        with suppress(CompactorError):
            harness.run_once(store=store, engine=harness.engine(store))
        settle(harness)
        check_table(harness, "m1")
        harness.check_exact()
        if store.calls[method] < number:
            break
    assert number > 2


def test_what_was_verified_is_decided_without_writing_again() -> None:
    """A death right after it leaves files in place that the next attempt takes, unless one of them is gone."""
    for loses in (False, True):
        harness = in_place()
        harness.deliver("m1", GOOD, GOOD)
        run_to(harness, dying_at(CrashPoint.VERIFIED))
        before = outputs(harness)
        assert len(before) == 2
        if loses:
            harness.store.delete(before[:1])
        settle(harness)
        check_table(harness, "m1")
        assert (outputs(harness) == before) is not loses
        harness.check_exact()


def test_a_failed_attempt_deletes_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right away, and nothing else."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    other, seen = orphan(harness), list[list[str]]()

    def fail(*_: object) -> None:
        seen.append([uri.removeprefix(harness.layout.in_place_of(M1)) for uri in outputs(harness)])
        raise CompactorError("the counts do not add up")

    with monkeypatch.context() as patched, suppress(CompactorError):
        patched.setattr("compactor.job.staging.verify_staged", fail)
        harness.run_once()
    last = other.removeprefix(harness.layout.in_place_of(M1))
    assert seen[:2] == [["1/00000.snappy.parquet", last], ["2/00000.snappy.parquet", last]]


def test_a_file_that_a_stranger_deletes_before_it_is_published() -> None:
    """The manifest is stuck, says so, and can be rebuilt from its input: no table lists what is not there."""
    harness = in_place()
    harness.deliver("m1", GOOD, GOOD)
    run_to(harness, dying_at(CrashPoint.DECIDED))
    commit = harness.commit("m1")
    harness.store.delete([commit.outputs[0].final])
    accepted = harness.ledger.accepted("m1")
    assert accepted is not None
    app = harness.app()
    with pytest.raises(StagingLost, match=r"m1 is committed, but .* disappeared .*compactor rebuild --manifest m1"):
        streaming.scheduler(app, harness.engine()).compactor.publisher.place(accepted, commit)
    assert sink_of(harness).commits == 0
    assert [each.generation for each in rebuild(harness, "m1").rebuilt] == [2]
    settle(harness)
    check_table(harness, "m1")
    assert sorted(outputs(harness)) == sorted(file.final for file in harness.commit("m1").outputs)
    harness.check_exact()


@pytest.mark.parametrize("step", [CrashPoint.ATTEMPTED, CrashPoint.OPENED, CrashPoint.DECIDED, CrashPoint.PUBLISHED])
def test_a_rebuild_writes_in_place_again(step: CrashPoint) -> None:
    """Under names of its own, wherever it dies; those of before go once the table has it."""
    harness = in_place()
    harness.deliver("m1", GOOD, FLAWED)
    harness.run_once()
    before = outputs(harness)
    with suppress(DiedError):
        rebuild(harness, "m1", force=True, on_crash_point=dying_at(step))
    assert rebuild(harness, "m1", force=True).failed == ()
    settle(harness)
    check_table(harness, "m1")
    assert not set(before) & set(outputs(harness))
    harness.check_exact()


def test_from_one_way_to_the_other_and_back() -> None:
    """A rebuild goes by the settings of its own time, whichever way the files of before were published."""
    for first in (False, True):
        harness = Harness(table={}, in_place=first)
        harness.deliver("m1", GOOD, FLAWED)
        harness.run_once()
        before = outputs(harness)
        harness.settings = replace(harness.settings, in_place=not first)
        assert rebuild(harness, "m1", force=True).failed == ()
        assert {file.is_in_place for file in harness.commit("m1").outputs} == {not first}
        assert not set(before) & set(outputs(harness))
        check_table(harness, "m1")
        harness.check_exact()


def test_erasing_in_place() -> None:
    """No object holds the values afterwards, orphans neither, and the table has all other rows."""
    harness = in_place(schema={"max_columns": 10})
    deliver(harness)
    harness.run_once()
    for name in ("m1", "m3"):  # the second one has no line of hers, so that it is not made again
        uri = orphan(harness, ManifestKey(DAY, name))
        harness.store.put(uri, b'{"user_id": "alice-7f3a"}')
    report = erase(harness)
    assert (len(report.erased), report.left, report.discrepancies) == (2, 0, ())
    assert holding(harness) == []
    check_table(harness, "m1", "m2", "m3")
    assert all(file.is_in_place for file in harness.commit("m1").outputs)
    check_tidy(harness)


def test_the_fate_of_a_file() -> None:
    """Only the outcome of its own generation says what a file is; without one, nothing may be deleted."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    run_to(harness, dying_at(CrashPoint.CONVERTED))
    [written] = outputs(harness)
    state = harness.app().state
    assert InPlaceFiles(state).fate(written) is Fate.UNDECIDED
    settle(harness)
    [named] = outputs(harness)
    files = InPlaceFiles(state)
    layout = harness.layout
    assert files.fate(named) is Fate.NAMED
    assert files.fate(written) is Fate.ORPHANED
    assert files.fate(layout.in_place(M1, 1, 2) + "a.parquet") is Fate.UNDECIDED, "a rebuild that may be at work"
    assert files.fate(layout.in_place(ManifestKey(DAY, "m2"), 1) + "a.parquet") is Fate.UNKNOWN
    assert files.fate(layout.in_place(ManifestKey("2026-01-03", "m1"), 1) + "a.parquet") is Fate.UNKNOWN
    assert files.fate(layout.output_file(M1, 0)) is Fate.UNKNOWN
    harness.store.put(layout.outcome(M1, 2), b"{")
    assert files.fate(layout.in_place(M1, 1, 2) + "a.parquet") is Fate.UNREADABLE


def test_orphans_are_deleted_after_a_day() -> None:
    """By `compactor data clean` and by the job; what a commit names, what is undecided and what is foreign stays."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    harness.run_once()
    live = outputs(harness)
    harness.deliver("m2", GOOD)
    run_to(harness, dying_at(CrashPoint.CONVERTED))
    undecided = set(outputs(harness)) - set(live)
    gone = [orphan(harness), orphan(harness, attempt=3)]
    foreign = [orphan(harness, ManifestKey(DAY, "never")), orphan(harness, generation=2)]
    assert clean(harness).removed[Kind.ORPHANED] == 0, "not a day old"
    harness.clock.advance(LATER)
    before = outputs(harness)
    tried = clean(harness, dry_run=True)
    assert tried.removed[Kind.ORPHANED] == 2
    assert outputs(harness) == before
    report = clean(harness, all_orphans=False)
    assert report.removed[Kind.ORPHANED] == 2
    assert set(before) - set(outputs(harness)) == set(gone)
    assert {each.where for each in report.kept_named if "merged-parquet" in each.where} == {*undecided, *foreign}
    assert set(live) <= set(outputs(harness))


def test_the_job_looks_back_for_some_days() -> None:
    """What is older costs it nothing, and `compactor data clean` finds it."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    harness.run_once()
    uri = orphan(harness)
    harness.clock.advance(timedelta(days=9).total_seconds())
    assert clean(harness, all_orphans=False).removed[Kind.ORPHANED] == 0
    assert clean(harness).removed[Kind.ORPHANED] == 1
    assert harness.store.stat(uri) is None


def test_a_job_that_may_not_delete_output_goes_on() -> None:
    """Its manifests are done; who may deletes the orphans."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    run_to(harness, dying_at(CrashPoint.CONVERTED))
    [written] = outputs(harness)

    class Refusing(FaultyStore):
        def delete(self, uris: Iterable[str]) -> None:
            found = list(uris)
            if written in found:
                raise AccessError(f"{written}: access denied")
            super().delete(found)

    store = Refusing(harness.store)
    harness.clock.advance(3600)
    assert harness.run_once(store=store, engine=harness.engine(store)).committed == 1
    check_table(harness, "m1")
    assert harness.waiting() == []
    assert harness.verification().orphans == 1
    harness.clock.advance(LATER)
    assert clean(harness).removed[Kind.ORPHANED] == 1
    harness.check_exact()


def test_what_the_job_may_not_delete_holds_up_nothing() -> None:
    """Its daily cleaning ends all the same, and says so; a person who cleans is told of the refusal."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    harness.run_once()
    orphan(harness)
    harness.clock.advance(LATER)

    class Refusing(FaultyStore):
        def delete(self, uris: Iterable[str]) -> None:
            found = list(uris)
            if any("/output/" in uri for uri in found):
                raise AccessError("access denied")
            super().delete(found)

    cleaner = operating.cleaner(harness.app(store=Refusing(harness.store)))
    report = cleaner.clean(archive_days=0)
    assert (report.removed[Kind.ORPHANED], report.removed[Kind.ARCHIVED]) == (0, 1)
    assert report.kept["the job is not permitted to delete orphans there"] == 1
    with pytest.raises(AccessError):
        cleaner.clean(archive_days=0, all_orphans=True)


def test_verify_tells_orphans_from_rows_too_many() -> None:
    """An orphan is in no table, so that no row is there twice; without a table, readers of the folders would see it."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    harness.run_once()
    uri = orphan(harness)
    found = harness.verification()
    assert (found.orphans, found.orphaned_bytes, found.discrepancies) == (1, 23, [])
    assert operating.verifier(harness.app()).verify_manifests([M1]).orphans == 1
    assert operating.verifier(harness.app()).verify_date(DAY).orphans == 1
    unknown = orphan(harness, ManifestKey(DAY, "never"))
    assert [each.where for each in harness.verification().discrepancies] == [unknown]
    harness.store.delete([unknown])
    harness.settings = replace(harness.settings, table=harness.settings.table.model_copy(update={"name": ""}))
    assert [each.where for each in harness.verification().discrepancies] == [uri]


def test_verify_beside_a_job_at_work() -> None:
    """Files of a manifest that is not decided are no discrepancy."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    run_to(harness, dying_at(CrashPoint.CONVERTED))
    found = harness.verification()
    assert (found.orphans, found.discrepancies) == (0, [])


def test_a_dead_letter_leaves_no_file() -> None:
    """Whatever its attempts wrote is in no commit."""
    harness = in_place(stream={"max_attempts": 2})
    harness.deliver("m1", GOOD)
    for _ in range(6):
        run_to(harness, dying_at(CrashPoint.CONVERTED))
        harness.clock.advance(3600)
        if harness.ledger.state(M1).outcome is not None:
            break
    harness.run_once()
    assert harness.dead_letter("m1").reason == "retries_exhausted"
    assert outputs(harness) == []


def test_tracing_a_file_in_place() -> None:
    """A file, live or orphaned, is of its manifest."""
    harness = in_place()
    harness.deliver("m1", GOOD)
    harness.run_once()
    [live] = outputs(harness)
    assert harness.layout.output_owner(live) == M1
    assert harness.layout.output_owner(orphan(harness)) == M1
    assert parquet_facts(harness.store, live).rows == 2
