"""A date expires once, whatever dies or comes late; and what is gone without a record is still missing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.crash_points import ChangeCrashPoint, CrashPoint
from compactor.core.documents.changes import Taking, Why
from compactor.core.documents.records import FileStatus
from compactor.core.errors import AccessError, CompactorError
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectInfo
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.visible import Visible
from compactor.ops.expire import DateFacts
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.rejects import Query, RejectsSearch
from compactor.ops.verify.report import VerifyResult
from compactor.upkeep.expiring import Expirer
from compactor.wiring import operating
from tests.support.expiring import LATER_DAY, NEXT_DAY, closed_days, compacted, expire, files_of, wait_and_close
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, DiedError, Harness
from tests.support.histories import closed, verified
from tests.support.rebuilding import NEVER, WatchedStore, rebuild
from tests.support.redriving import redrive, rejected, whys

M1 = ManifestKey(DAY, "m1")
WHY = f"under `compactor data expire --before {NEXT_DAY}`"


def records(harness: Harness) -> list[Taking]:
    listed = harness.store.list(harness.layout.changes_folder(Why.DATE))
    return [Taking.model_validate_json(harness.store.read(info.uri)) for info in listed]


def left_over(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.changing_folder)]


def checked(harness: Harness) -> VerifyResult:
    """What `verify` says by all records, which has to agree with the summaries in every total."""
    by_records, by_summaries = verified(harness, by_records=True), verified(harness)
    assert by_records.by_name == by_summaries.by_name
    assert by_records.rows + by_records.rejected_lines + by_records.blank_lines == by_records.lines
    return by_records


def test_an_expired_date_is_not_missing() -> None:
    """All of its files go, those of other dates stay, and no total changes; the record has rule, time and person."""
    harness = closed_days()
    before, kept = checked(harness), files_of(harness, NEXT_DAY)
    said = expire(harness, dry_run=True)
    assert files_of(harness, DAY)
    report = expire(harness)
    assert (report.expired, report.refused) == (said.expired, ())
    [sizes] = report.expired
    assert (sizes.date, sizes.manifests, sizes.rows, sizes.rejected_lines) == (DAY, 2, 8, 4)
    assert (files_of(harness, DAY), files_of(harness, NEXT_DAY), left_over(harness)) == ([], kept, [])
    [record] = records(harness)
    assert (record.by, record.manifests, record.words.partition(" under ")[2]) == (
        "ann@desk",
        {"m1": 1, "m2": 1},
        WHY[6:],
    )
    found = checked(harness)
    assert (found.by_name, found.discrepancies, found.needs_operator) == (before.by_name, [], False)
    assert (found.expired_dates, found.expiring) == (1, 0)
    assert {(each.date, each.part, each.why.endswith(WHY)) for each in found.expired} == {
        (DAY, "rows", True),
        (DAY, "rejects", True),
    }
    assert operating.verifier(harness.app(), deep=True).verify_all().discrepancies == []
    again = expire(harness)
    assert (again.expired, again.expired_before, records(harness)) == ((), 1, [record])


def test_what_is_gone_without_a_record_is_missing() -> None:
    """Also within a date of which something expired, and of a manifest that came later."""
    harness = closed_days()
    expire(harness)
    compacted(harness, "late")
    assert checked(harness).discrepancies == []
    lost = harness.commit("late").outputs[0].final
    harness.store.delete([lost, *(file.final for file in harness.commit("m3").outputs)])
    found = verified(harness, by_records=True)
    assert {each.manifest_id for each in found.discrepancies} == {"late", "m3"}
    assert found.needs_operator


def test_what_comes_late_goes_with_a_later_call() -> None:
    """Once it is in a summary, and under a record of its own; until then the date is refused."""
    harness = closed_days()
    expire(harness)
    compacted(harness, "late")
    [refused] = expire(harness).refused
    assert "in no summary; expected `compactor data close`" in refused.why
    wait_and_close(harness)
    [late] = expire(harness, LATER_DAY).expired[:1]
    assert (late.date, late.manifests, late.rows) == (DAY, 1, 4)
    assert files_of(harness, DAY) == []
    assert checked(harness).discrepancies == []


def test_an_expired_manifest_is_never_new_again() -> None:
    """A second delivery of the same object makes no row."""
    harness = closed_days()
    files = [harness.named(file.uri) for file in harness.commit("m1").files]
    expire(harness)
    compacted(harness, "m1", files=files)
    assert [uri for uri in files_of(harness, DAY) if "/archive/" not in uri] == []
    assert checked(harness).discrepancies == []


def test_only_finished_dates_expire() -> None:
    """What is refused says which command comes first, and stays as it is."""
    harness = Harness()
    with pytest.raises(CompactorError, match="no closed dates; expected `compactor data close`"):
        expire(harness)
    compacted(harness, "m1")
    harness.put_manifest("bad.json", b"{}")
    gone = f"{harness.root}/raw/gone.ndjson"
    harness.store.put(gone, GOOD)
    named = harness.named(gone)
    harness.store.delete([gone])
    compacted(harness, "m2", NEXT_DAY, [harness.file("there.ndjson", GOOD), named])
    wait_and_close(harness)
    compacted(harness, "m3", LATER_DAY)
    before = [files_of(harness, day) for day in (DAY, NEXT_DAY, LATER_DAY)]
    report = expire(harness, "2100-01-01")
    expected = ["redrive manifests --date", "redrive files --date", "it is not closed; expected `compactor data close`"]
    assert [words in each.why for words, each in zip(expected, report.refused, strict=True)] == [True] * 3
    assert [files_of(harness, day) for day in (DAY, NEXT_DAY, LATER_DAY)] == before
    assert [each.date for each in expire(harness, LATER_DAY, with_unsettled=True).expired] == [DAY, NEXT_DAY]
    found = checked(harness)
    assert (len(found.dead_letter_manifests), len(found.quarantined_files), found.discrepancies) == (1, 1, [])
    assert redrive(harness, "manifests").redriven == ()  # nothing to take in `{}`, and its original is there still
    assert harness.store.stat(harness.layout.failed_manifest("bad")) is not None


def test_a_manifest_in_work_keeps_its_date() -> None:
    """A manifest that waits, or that is being rebuilt."""
    harness = closed_days()
    files = [harness.file("new.ndjson", GOOD)]
    manifest = harness.manifest("new", files)
    harness.ledger.open(ManifestKey(DAY, "m2"), 2)
    [refused] = expire(harness).refused
    assert "expected `compactor data close`" in refused.why
    harness.store.delete([harness.layout.open_marker("m2", 2)])
    harness.put_manifest("new.json", manifest.to_json())
    accepted = harness.ledger.accepted("m1")
    assert accepted is not None
    uri = harness.layout.manifest("new")
    harness.ledger.accept(accepted.model_copy(update={"manifest_id": "new", "source_uri": uri, "manifest": manifest}))
    [refused] = expire(harness).refused
    assert "1 manifest in progress" in refused.why


def _changes() -> int:
    harness = closed_days()
    store = WatchedStore(harness.store)
    expire(harness, store=store)
    return store.changes


def test_an_expiry_that_dies_anywhere() -> None:
    """Before each change: nothing is ever gone without its record, and the next call finishes it."""
    for change in range(_changes()):
        harness = closed_days()

        def check(harness: Harness = harness) -> None:
            assert verified(harness, by_records=True).discrepancies == []

        with pytest.raises(DiedError):
            expire(harness, store=WatchedStore(harness.store, change, check))
        begun = bool(left_over(harness))
        check()
        report = expire(harness, LATER_DAY)  # another rule: what was begun keeps its own
        assert report.finished == begun, change
        assert (files_of(harness, DAY), files_of(harness, NEXT_DAY), left_over(harness)) == ([], [], []), change
        rules = {each.about: each.words.partition(" under ")[2] for each in records(harness)}
        assert rules[DAY].endswith(f"{NEXT_DAY if begun else LATER_DAY}`"), change
        check()


@pytest.mark.parametrize("point", list(ChangeCrashPoint))
def test_each_crash_point_is_reached_and_survived(point: ChangeCrashPoint) -> None:
    """In their order, once a date."""
    harness, reached = closed_days(), list[ChangeCrashPoint]()

    def die(found: ChangeCrashPoint, _date: str) -> None:
        reached.append(found)
        if found is point:
            raise DiedError

    with pytest.raises(DiedError):
        expire(harness, on_crash_point=die)
    assert reached == list(ChangeCrashPoint)[: len(reached)]
    expire(harness)
    assert (files_of(harness, DAY), left_over(harness), len(records(harness))) == ([], [], 1)


def test_two_expiries_at_once() -> None:
    """Between any two changes of one, another one does everything; there is one record."""
    for change in range(0, _changes(), 2):
        harness = closed_days()
        store = WatchedStore(harness.store, NEVER)

        def meanwhile(harness: Harness = harness, store: WatchedStore = store, change: int = change) -> None:
            if store.changes == change:
                expire(harness)

        store._on_change = meanwhile
        expire(harness, store=store)
        assert (files_of(harness, DAY), left_over(harness), len(records(harness))) == ([], [], 1)
        assert checked(harness).discrepancies == []


def test_a_store_that_refuses_to_delete() -> None:
    """It stays begun and on record, `verify` says so, and the call that may delete finishes it."""

    class NoDelete(FaultyStore):
        def delete(self, uris: object) -> None:
            if "merged-parquet" in str(uris):
                raise AccessError("merged-parquet: AccessDenied")
            super().delete(uris)  # type: ignore[arg-type]

    harness = closed_days()
    for _ in range(3):
        with pytest.raises(AccessError):
            expire(harness, store=NoDelete(harness.store))
    assert (len(left_over(harness)), len(records(harness))) == (1, 1)
    found = checked(harness)
    assert (found.expiring, found.discrepancies) == (1, [])
    assert expire(harness).finished == 1
    assert (files_of(harness, DAY), left_over(harness)) == ([], [])


@pytest.mark.parametrize("point", [CrashPoint.ATTEMPTED, CrashPoint.OPENED])
def test_a_rebuild_at_the_same_time(point: CrashPoint) -> None:
    """Whichever is later gives up for that manifest: its rows are there once, or expired."""
    harness = closed_days()
    harness.store.delete([file.final for file in harness.commit("m1").outputs])

    def meanwhile(found: CrashPoint, _manifest_id: str) -> None:
        if found is point:
            report = expire(harness)
            assert bool(report.refused) == (point is CrashPoint.OPENED)

    report = rebuild(harness, "m1", on_crash_point=meanwhile)
    found = checked(harness)
    assert found.discrepancies == []
    if point is CrashPoint.OPENED:
        assert report.rebuilt
        assert not records(harness)
    else:
        assert [WHY in each.why for each in report.refused] == [True]
        assert files_of(harness, DAY) == []
        assert list(harness.ledger.open_ids()) == []


class EndsARebuild(WatchedStore):
    """A store of which a listing of open manifests waits until a rebuild has ended."""

    def __init__(self, harness: Harness, end: Callable[[], None]) -> None:
        super().__init__(harness.store)
        self._open_folder, self._end = harness.layout.open_folder, end

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        if prefix == self._open_folder:
            self._end()
        return super().list(prefix, start_after=start_after)


def test_a_rebuild_that_ends_while_files_go() -> None:
    """It opened its manifest before the record, so the names that it uses again are not deleted."""
    harness = closed_days()
    harness.store.delete([file.final for file in harness.commit("m1").outputs])
    opened, may_end = Event(), Event()

    def held_up(found: CrashPoint, _manifest_id: str) -> None:
        if found is CrashPoint.OPENED:
            opened.set()
            assert may_end.wait(60)

    with ThreadPoolExecutor() as pool:
        rebuilt = pool.submit(rebuild, harness, "m1", on_crash_point=held_up)
        assert opened.wait(60)

        def end() -> None:
            may_end.set()
            rebuilt.result()

        app = harness.app(store=EndsARebuild(harness, end))
        Expirer(state=app.state).expire(Why.DATE, DAY, "n", "a rule", {"m1": 1})
    assert rebuilt.result().rebuilt
    assert checked(harness).discrepancies == []


def test_what_expired_since_records_were_read() -> None:
    """It is told by another reading, because a record precedes each deletion."""
    harness = closed_days()
    store = FaultyStore(harness.store)
    expired = Visible(harness.app(store=store).state)
    assert expired.deletion("rows", M1) is None
    assert store.calls["list"] == 1, "one kind of rule takes rows; a first reading needs no other"
    expire(harness)
    found = expired.deletion("rows", M1)
    assert found is not None
    assert found.words.endswith(WHY)


def test_redriven_lines_that_were_quarantined_stay() -> None:
    """A person can still redrive them."""
    harness = Harness()
    rejected(harness)
    [redriven] = redrive(harness, "rejects").redriven
    folder = f"{harness.layout.redriven_folder}{redriven.manifest_id}/"
    lines = [info.uri for info in harness.store.list(folder)]
    harness.store.put(lines[0], b"other lines\n")
    harness.run_once()
    commit = harness.commit(redriven.manifest_id)
    assert {file.status for file in commit.files} > {FileStatus.COMPACTED}
    Expirer(state=harness.app().state).expire(Why.DATE, commit.date, "n", "a rule", {commit.manifest_id: 1})
    assert [info.uri for info in harness.store.list(folder)] == lines


def test_a_rebuild_that_begins_after_the_record() -> None:
    """The files of a manifest that is open stay until the next call."""
    harness = closed_days()

    def meanwhile(found: ChangeCrashPoint, _date: str) -> None:
        if found is ChangeCrashPoint.RECORDED:
            harness.ledger.open(M1, 2)

    [date] = expire(harness, on_crash_point=meanwhile).expired
    assert (date.in_work, len(left_over(harness))) == (1, 1)
    assert all("m1" in uri for uri in files_of(harness, DAY))
    harness.store.delete([harness.layout.open_marker("m1", 2)])
    assert expire(harness).finished == 1
    assert (files_of(harness, DAY), left_over(harness)) == ([], [])


def test_rebuild_leaves_alone_what_expired() -> None:
    """A named manifest is refused, with the words of `verify`; of all others they are counted."""
    harness = closed_days()
    expire(harness)
    scan = operating.rebuild_scanner(harness.app()).scan()
    assert ([each.manifest_id for each in scan.expired], scan.damaged, scan.refused) == (["m1", "m2"], (), ())
    for force in (False, True):
        [refused] = operating.rebuild_scanner(harness.app()).scan(("m1",), force=force).refused
        assert WHY in refused.why


def test_rejects_that_expired() -> None:
    """`rejects` counts them under their rule, `redrive rejects` refuses them by name, and else passes them over."""
    harness = closed_days()
    expire(harness)
    search = RejectsSearch(harness.app().state, Query(date=DAY))
    assert list(search.lines(None)) == []
    assert (search.unreadable, [why.endswith(WHY) for why in search.expired]) == ([], [True])
    app = harness.app()
    assert [each.key.id for each in find_redrivable(app.state, Scope("rejects")).sources] == ["m3"]
    assert [WHY in why for why in whys(redrive(harness, "rejects", "m1"))] == [True]


def test_trace_says_what_expired() -> None:
    """Of a manifest, of an output file and of an input file, without a command that could not help."""
    harness = closed_days()
    commit = harness.commit("m1")
    expire(harness)
    tracer = operating.tracer(harness.app())
    for what in (tracer.trace_manifest("m1"), tracer.trace(commit.outputs[0].final), tracer.trace(commit.files[1].uri)):
        assert [each.split(" expired ")[0] for each in what.expired] == ["archived manifest", "rows", "rejects"]
        assert (what.outputs, what.rejects, what.next_moves) == ([], [], [])
    assert tracer.trace_manifest("m3").expired == []


@pytest.mark.parametrize("damage", [b"", b"{", b'{"record_format": 9}'])
def test_a_record_that_cannot_be_read_hides_nothing(damage: bytes) -> None:
    """It is named, and what was under it is missing."""
    harness = closed_days()
    expire(harness)
    [place] = [info.uri for info in harness.store.list(harness.layout.changes_folder(Why.DATE))]
    harness.store.put(place, damage)
    wheres = {each.where for each in verified(harness, by_records=True).discrepancies}
    assert place in wheres
    assert {file.final for file in harness.commit("m1").outputs} <= wheres


def test_summaries_that_are_made_anew() -> None:
    """An expired date closes again, and stays expired."""
    harness = closed_days()
    expire(harness)
    listed = [info.uri for info in harness.store.list(harness.layout.closed_folder)]
    harness.store.delete([*listed, harness.layout.closing_begun, harness.layout.closed_totals])
    assert len(closed(harness).summarised) == 2
    again = expire(harness)
    assert (again.expired, again.expired_before, len(records(harness))) == ((), 1, 1)
    assert checked(harness).discrepancies == []


def test_expired_dates_cost_no_read() -> None:
    """The calls of one more expiry do not grow with the number of dates that expired."""

    def calls(of: Callable[[FaultyStore], object], harness: Harness) -> int:
        store = FaultyStore(harness.store)
        of(store)
        return store.calls.total()

    harness = closed_days()
    expire(harness)
    one = calls(lambda store: expire(harness, LATER_DAY, store=store, dry_run=True), harness)
    expire(harness, LATER_DAY)
    two = calls(lambda store: expire(harness, LATER_DAY, store=store), harness)
    assert two < one


@pytest.mark.parametrize("place", ["outcome", "summary"])
def test_what_cannot_be_read_keeps_its_own_date(place: str) -> None:
    """A damaged outcome that is in no summary, or a damaged summary: the date is refused with its name."""
    harness = closed_days()
    if place == "outcome":
        compacted(harness, "late", NEXT_DAY)
        uri = harness.layout.outcome(ManifestKey(NEXT_DAY, "late"))
    else:
        uri = harness.layout.summary(2)
    harness.store.put(uri, b"{ damaged")
    report = expire(harness, LATER_DAY)
    assert [each.date for each in report.expired] == [DAY]
    assert [(each.date, uri in each.why) for each in report.refused] == [(NEXT_DAY, True)]
    assert files_of(harness, NEXT_DAY)


counts = st.integers(0, 2)

facts_of_dates = st.builds(
    DateFacts,
    date=st.just(DAY),
    is_closed=st.booleans(),
    in_work=counts,
    unsummarised=counts,
    unreadable=st.sampled_from(["", "a record"]),
    dead_letters=counts,
    quarantined=counts,
)


@given(facts_of_dates, st.booleans())
def test_a_date_expires_only_if_nothing_of_it_is_unfinished(facts: DateFacts, with_unsettled: bool) -> None:
    """What waits for a person may be left out; nothing else may."""
    is_finished = facts.is_closed and not (facts.in_work or facts.unsummarised or facts.unreadable)
    is_settled = not facts.dead_letters and not facts.quarantined
    assert (not facts.why_not(with_unsettled=with_unsettled)) == (is_finished and (is_settled or with_unsettled))
