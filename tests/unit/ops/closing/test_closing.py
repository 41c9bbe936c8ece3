"""Dates are closed when they are quiet and verified, once, whatever dies or comes late."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, timedelta

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.closed_dates import Member
from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import CompactorError
from compactor.core.layout import ManifestKey
from compactor.core.ports import ObjectStore
from compactor.ledger.accounts.reading import Scope
from compactor.ledger.history.closed_dates import ClosedDates, Versions
from compactor.ledger.housekeeping import TaskNote
from compactor.ops.closing.closer import ClosingReport, report_of
from compactor.ops.closing.draft import VersionIndex
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import operating, streaming
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, answer, closed, reported, verified
from tests.support.rebuilding import NEVER, WatchedStore, rebuild

NEXT_DAY = (date.fromisoformat(DAY) + timedelta(days=1)).isoformat()


def compacted(harness: Harness, manifest_id: str, day: str = DAY, files: Sequence[ManifestFile] = ()) -> None:
    """Bring a manifest of two files, or of the given ones, to done."""
    files = files or [
        harness.file(f"{manifest_id}-{part}.ndjson", content) for part, content in enumerate((GOOD, FLAWED))
    ]
    manifest = harness.manifest(manifest_id, files).model_copy(update={"date": day})
    harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
    harness.run_once()


def quiet() -> Harness:
    """A day with a commit and a dead letter, and another day, both quiet."""
    harness = Harness()
    harness.put_manifest("bad.json", b"{}")
    compacted(harness, "m1")
    compacted(harness, "m2", NEXT_DAY)
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    return harness


def quiet_with_lost_file() -> Harness:
    """A quiet date that has a quarantined file, too: m4 names one that is not there."""
    harness = quiet()
    lost = harness.file("lost.ndjson", GOOD)
    harness.store.delete([lost.uri])
    compacted(harness, "m4", files=[lost])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    return harness


def summaries(harness: Harness) -> dict[str, bytes]:
    return {info.uri: harness.store.read(info.uri) for info in harness.store.list(harness.layout.closed_folder)}


def marks(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.unsummarised_folder)]


def numbers(report: ClosingReport) -> list[tuple[str, int, int]]:
    return [(each.date, each.number, each.manifests) for each in report.summarised]


def check(harness: Harness) -> None:
    assert answer(verified(harness)) == answer(verified(harness, by_records=True))


def test_a_quiet_date_is_closed_once() -> None:
    """It is summed up with its dead letters; then there is nothing left to do, and its records are not read again."""
    harness = quiet()
    assert numbers(closed(harness)) == [(DAY, 1, 2), (NEXT_DAY, 1, 1)]
    assert marks(harness) == []
    assert closed(harness) == report_of([])
    store = FaultyStore(harness.store)
    report = operating.verifier(harness.app(store=store)).verify_all()
    assert report.closed_dates == 2
    assert (report.manifests, report.dead_letters, report.lines, report.rows) == (2, 1, 14, 8)
    check(harness)


def test_a_damaged_record_holds_up_its_own_date() -> None:
    """Of an open manifest, of which only the index of open ones still says the date: other dates are closed."""
    harness = quiet()
    harness.store.put(harness.layout.accepted("m3"), b"{ damaged")
    harness.ledger.open(ManifestKey(NEXT_DAY, "m3"))
    report = closed(harness)
    assert numbers(report) == [(DAY, 1, 2)]
    assert [(each.date, each.why) for each in report.left_open] == [(NEXT_DAY, "1 manifest in work")]


@pytest.mark.parametrize("place", ["accepted", "open_marker"])
def test_a_damaged_record_holds_up_no_date_with_quarantined_files(place: str) -> None:
    """What settled these may be in any manifest: if it cannot be told which are open, all later ones are read."""
    harness = quiet_with_lost_file()
    manifest = harness.manifest("m3", [harness.file("m3.ndjson", GOOD)]).model_copy(update={"date": NEXT_DAY})
    waiting = harness.put_manifest("m3.json", manifest.to_json())
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(CrashPoint.DECIDED)).run([waiting])
    uri = harness.layout.accepted("m3") if place == "accepted" else harness.layout.open_marker("m3")
    harness.store.put(uri, b"{ damaged")
    assert (DAY, 1, 3) in numbers(closed(harness))


def test_a_date_with_new_records_stays_open() -> None:
    """By the store's time of its last record, to the second; the other date is closed meanwhile."""
    harness = quiet()
    compacted(harness, "m3")
    report = closed(harness)
    assert numbers(report) == [(NEXT_DAY, 1, 1)]
    [left] = report.left_open
    assert (left.date, left.is_wrong) == (DAY, False)
    harness.clock.advance(48 * HOUR_SECONDS - 1)
    assert numbers(closed(harness)) == []
    harness.clock.advance(1)
    assert numbers(closed(harness)) == [(DAY, 1, 3)]


def test_a_date_with_work_stays_open() -> None:
    """Also if nothing of it was written for long."""
    harness = quiet()
    harness.ledger.open(ManifestKey(DAY, "m1"), 2)
    report = closed(harness)
    assert [(each.date, each.why) for each in report.left_open] == [(DAY, "1 manifest in work")]


def test_what_comes_late_makes_an_addition() -> None:
    """A late manifest, a redrive and a rebuild each do; the summaries before stay as they were, to the byte."""
    harness = quiet()
    closed(harness)
    before = summaries(harness)
    compacted(harness, "late")
    letter = harness.layout.failed_manifest("bad")
    harness.store.delete([harness.layout.output_file(ManifestKey(DAY, "m1"), 0)])
    assert rebuild(harness, "m1").rebuilt
    check(harness)
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    assert numbers(closed(harness)) == [(DAY, 2, 2)]
    assert harness.store.stat(letter) is not None
    assert before.items() < summaries(harness).items()
    assert marks(harness) == []
    check(harness)


def test_a_redriven_file_of_a_closed_date_needs_no_operator() -> None:
    """The redrive is seen at once, and the next summary of the date leaves the file out."""
    harness = Harness()
    gone = f"{harness.root}/raw/gone.ndjson"
    compacted(harness, "m1", files=[harness.file("a.ndjson", GOOD), ManifestFile(uri=gone)])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)
    assert verified(harness).needs_operator
    harness.store.put(gone, GOOD)
    app = harness.app()
    operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")))
    check(harness)
    harness.run_once()
    assert not verified(harness).needs_operator
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    assert numbers(closed(harness)) == [(DAY, 2, 1)]
    assert ClosedDates(harness.store, harness.layout).totals().quarantined == []
    check(harness)


def test_what_does_not_add_up_keeps_its_date_open() -> None:
    """It is named, the other date is closed, and the exit code is that for a person."""
    harness = quiet()
    harness.store.delete([harness.layout.output_file(ManifestKey(DAY, "m1"), 0)])
    report = closed(harness)
    assert numbers(report) == [(NEXT_DAY, 1, 1)]
    assert report.needs_operator
    assert [each.manifest_id for each in report.discrepancies] == ["m1"]
    check(harness)


def test_doubles_across_dates_are_found() -> None:
    """When the later date is closed; from then on `verify` names both manifests, as it does by all records."""
    harness = quiet()
    closed(harness)
    compacted(harness, "again", NEXT_DAY, [harness.named(f"{harness.root}/raw/m1-0.ndjson")])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    report = closed(harness)
    assert numbers(report) == [(NEXT_DAY, 2, 1)]
    [double] = report.discrepancies
    assert (double.manifest_id, "m1" in double.found) == ("again", True)
    assert verified(harness).discrepancies == [double]
    check(harness)


@pytest.mark.parametrize("is_lost", [False, True], ids=("dies", "answer lost"))
def test_a_closing_that_dies_anywhere(*, is_lost: bool) -> None:
    """Before or after any change, the answers stay, and the next closing completes it, with each manifest once."""
    at = 0
    while True:
        harness = quiet()
        if is_lost:
            store = FaultyStore(harness.store)
            for method in ("create", "put", "delete"):
                store.lose_answer_at(at + 1, method)
            with suppress(CompactorError):
                operating.closer(harness.app(store=store)).close()
            has_ended = max(store.calls[method] for method in ("create", "put", "delete")) <= at
        else:
            watched = WatchedStore(harness.store, at)
            with suppress(DiedError):
                closed(harness, watched)
            has_ended = not watched.has_died
        check(harness)
        closed(harness)
        members = [
            each[0] for place in range(1, 3) for each in ClosedDates(harness.store, harness.layout).members(place)
        ]
        assert sorted(members) == ["bad", "m1", "m2"]
        assert (len(summaries(harness)), marks(harness)) == (2, [])
        check(harness)
        if has_ended:
            break
        at += 1
    assert at > 3


OTHERS: dict[str, Callable[[Harness], object]] = {
    "closing": closed,
    "late manifest": lambda harness: compacted(harness, "late"),
    "rebuild": lambda harness: rebuild(harness, "m1", force=True),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_happens_beside_a_closing(other: str) -> None:
    """Between any two writes another process closes, brings a manifest to done, or rebuilds one: none is missed."""
    for at in range(1, 9):
        harness = quiet()
        changes = 0

        def on_change(harness: Harness = harness, at: int = at) -> None:
            nonlocal changes
            changes += 1
            if changes == at:
                OTHERS[other](harness)

        closed(harness, WatchedStore(harness.store, NEVER, on_change))
        check(harness)
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        closed(harness)
        assert marks(harness) == []
        check(harness)


class HeldUp(WatchedStore):
    """Something happens after all was read and verified, right before the summary is created."""

    def __init__(self, harness: Harness, happening: Callable[[Harness], object]) -> None:
        super().__init__(harness.store)
        self._harness = harness
        self._happening: Callable[[Harness], object] | None = happening

    def create(self, uri: str, data: bytes) -> bool:
        if uri.endswith(".summary") and self._happening is not None:
            happening, self._happening = self._happening, None
            happening(self._harness)
        return super().create(uri, data)


@pytest.mark.parametrize("other", OTHERS)
def test_what_happens_before_a_summary_is_written(other: str) -> None:
    """A process that was held up writes no second summary of what another one has summarised, and loses nothing."""
    harness = quiet()
    report = closed(harness, HeldUp(harness, OTHERS[other]))
    assert (DAY in [each.date for each in report.summarised]) == (other != "closing")
    check(harness)
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)
    assert marks(harness) == []
    check(harness)


def closed_date(harness: Harness, day: str, store: ObjectStore | None = None) -> ClosingReport:
    """What a process does that closes one date alone."""
    closer = operating.closer(harness.app(store=store))
    dates = ClosedDates(store or harness.store, harness.layout)
    found = closer._candidates(day, [each for each in dates.marks() if each.key.date == day])
    return report_of(closer._close_date(found, 0, VersionIndex(dates)))


def test_doubles_of_two_closings_at_once_are_found() -> None:
    """Each of them closes another date, and the one that comes second compares with the first."""
    harness = quiet()
    compacted(harness, "again", NEXT_DAY, [harness.named(f"{harness.root}/raw/m1-0.ndjson")])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    store = HeldUp(harness, lambda _: closed_date(harness, DAY))
    report = closed_date(harness, NEXT_DAY, store)
    assert numbers(report) == [(NEXT_DAY, 1, 2)]
    assert [each.manifest_id for each in report.discrepancies] == ["again"]


def test_what_a_closing_at_the_same_time_has_settled_is_not_named() -> None:
    """Of another date, with a manifest that was committed after this one was verified and before it was written."""
    harness = quiet_with_lost_file()

    def settle(_: Harness) -> None:
        compacted(harness, "m5", NEXT_DAY, [harness.file("lost.ndjson", GOOD)])
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        assert numbers(closed_date(harness, NEXT_DAY)) == [(NEXT_DAY, 1, 2)]

    assert numbers(closed_date(harness, DAY, HeldUp(harness, settle))) == [(DAY, 1, 3)]
    check(harness)
    assert ClosedDates(harness.store, harness.layout).totals().quarantined == []


def test_the_members_of_a_date_are_one_request() -> None:
    """Commands that look for rejects ask for those of each date that has some; more members than usual are two."""
    harness = quiet()
    closed(harness)
    store = FaultyStore(harness.store)
    dates = ClosedDates(store, harness.layout)
    assert [each.id for each in dates.members(1)] == ["bad", "m1"]
    assert store.calls["any"] == 1
    many = [Member(f"m-{number:06d}", 1, number, 0) for number in range(9_000)]
    assert dates.write(3, dates.read(2), many, Versions.none())
    before = store.calls["read_range"]
    assert dates.members(3) == many
    assert store.calls["read_range"] == before + 2


@pytest.mark.parametrize("lost", ["index", "summaries"])
def test_doubles_are_found_without_the_index_of_versions(lost: str) -> None:
    """It is made again where it was lost, and where it is of summaries that were deleted and made anew."""
    harness = quiet()
    closed(harness)
    harness.clock.advance(HOUR_SECONDS)
    compacted(harness, "late", DAY, [harness.file("late.ndjson", GOOD)])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)
    layout, store = harness.layout, harness.store
    index = [info.uri for info in store.list(layout.closed_versions)]
    assert len(index) > 1
    if lost == "index":
        store.delete(index[:1])
    else:
        listed = [info.uri for info in store.list(layout.closed_folder)]
        store.delete([*listed, layout.closing_begun, layout.closed_totals])
    compacted(harness, "again", "2026-01-09", [harness.named(f"{harness.root}/raw/m1-0.ndjson")])
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    assert [each.manifest_id for each in closed(harness).discrepancies] == ["again"]


def test_an_index_that_another_closing_has_extended_is_kept() -> None:
    """Its summaries are behind those that this closing knows of, and are not compared yet."""
    harness = quiet()
    closed(harness)
    dates = ClosedDates(harness.store, harness.layout)
    ahead, behind = VersionIndex(dates), VersionIndex(dates)
    ahead.read_to(2)
    behind.read_to(1)
    [versions] = dates.versions(2)
    assert {place for _, place, _ in ahead.shared(versions)} == {2}
    assert list(behind.shared(versions)) == []
    behind.read_to(2)
    assert {place for _, place, _ in behind.shared(versions, after=1)} == {2}


def test_the_first_closing_reads_the_whole_ledger() -> None:
    """So it finds also what lost its mark."""
    harness = quiet()
    harness.store.delete(marks(harness))
    assert numbers(closed(harness)) == [(DAY, 1, 2), (NEXT_DAY, 1, 1)]
    check(harness)


@pytest.mark.parametrize("place", ["closed_totals", "summary"])
def test_lost_and_damaged_summaries(place: str) -> None:
    """The sums are made again if they are lost; a damaged summary is named, and all records are read instead."""
    harness = quiet()
    closed(harness)
    expected = verified(harness)
    uri = harness.layout.closed_totals
    harness.store.delete([uri])
    if place == "summary":
        harness.store.put(harness.layout.summary(1), b"{}\n")
        found = verified(harness)
        assert (found.closed_dates, found.manifests) == (0, 2)
        assert [each.where for each in found.discrepancies] == [harness.layout.closed_folder]
    else:
        assert answer(verified(harness)) == answer(expected)


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("damage", ["gone", "no document", "cut in its versions", "without a member"])
def test_a_verification_of_closed_dates_names_a_summary_that_is_not_whole(damage: str, place: int) -> None:
    """Once it is in the sums only closing reads it, which ends for all dates until the summaries are made again."""
    harness = quiet()
    closed(harness)
    assert len(summaries(harness)) == 2
    uri = harness.layout.summary(place)
    data = harness.store.read(uri)
    assert verified(harness, by_records=True).discrepancies == []
    head, _, rest = data.partition(b"\n")
    changed = {"no document": b"{}\n", "cut in its versions": data[:-1], "without a member": head + b"\n" + rest[3:]}
    if damage in changed:
        harness.store.put(uri, changed[damage])
    else:
        harness.store.delete([uri])
    assert [each.where for each in verified(harness, by_records=True).discrepancies] == [uri]


def test_a_summary_that_is_gone_without_the_sums() -> None:
    """One behind it is there still. Something else in the folder is named, too, and takes no time."""
    harness = quiet()
    closed(harness)
    harness.store.delete([harness.layout.closed_totals, harness.layout.summary(1)])
    harness.store.put(harness.layout.summary(99_999_999), b"{}")
    found = [each.where for each in verified(harness, by_records=True).discrepancies]
    assert found == [harness.layout.summary(1), harness.layout.summary(99_999_999)]


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_earlier_commit_that_cannot_be_read(is_lost: bool) -> None:
    """Of a manifest that was rebuilt after its date was closed: it is named, and all records are read instead."""
    harness = quiet()
    closed(harness)
    harness.store.delete([harness.commit("m1").outputs[0].final])
    rebuild(harness)
    expected = verified(harness, by_records=True)
    uri = harness.layout.outcome(ManifestKey(DAY, "m1"))
    harness.store.delete([uri])
    if not is_lost:
        harness.store.put(uri, b"{ damaged")
    found = verified(harness)
    assert (found.closed_dates, found.rows, found.lines) == (0, expected.rows, expected.lines)
    assert any(uri in each.found for each in found.discrepancies)


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_summary_that_is_in_the_sums_and_cannot_be_read(is_lost: bool) -> None:
    """The records of its date say which manifests may have rejects, or settle a quarantined file."""
    harness = quiet_with_lost_file()
    closed(harness)

    def answers() -> list[object]:
        scopes = [Scope(kind) for kind in ("files", "rejects", "manifests")]
        scans = [find_redrivable(harness.app().state, each) for each in scopes]
        letters = operating.status_reader(harness.app()).read().dead_letters.open
        return [[each.key.id for each in scan.sources] for scan in scans] + [reported(harness), letters]

    before = answers()
    assert before[:3] == [["m4"], ["m1", "m2"], ["bad"]]
    for uri in summaries(harness):
        kept = harness.store.read(uri)
        harness.store.delete([uri])
        if not is_lost:
            harness.store.put(uri, b"{ damaged")
        assert answers() == before
        harness.store.put(uri, kept)


def test_the_job_closes_once_a_day() -> None:
    """Once an operator has begun."""
    harness = quiet()
    app = harness.app()
    operating.close_quiet_dates(app)
    assert summaries(harness) == {}
    closed(harness)
    compacted(harness, "late")
    tasks = streaming.tasks(app)
    for _ in range(4):
        tasks.step()
        tasks.wait()
        harness.clock.advance(25 * HOUR_SECONDS)
    assert len(summaries(harness)) == 3
    check(harness)


def test_a_note_of_the_daily_closing_closes_nothing() -> None:
    """What became of a closing is not that dates may be closed."""
    harness = Harness()
    TaskNote(harness.app().state, "closing").finished()
    assert not operating.closer(harness.app()).has_begun()
