"""Promises of `data erase`: no object holds what was asked for, all else stays, and everything adds up."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from tempfile import gettempdir

import pytest

from compactor.core.crash_points import CrashPoint, RedriveCrashPoint
from compactor.core.documents.changes import Erasure, SearchedPlace, Why
from compactor.ledger.accounts.reading import Detail, account_of, redriven_lines
from compactor.wiring import operating
from tests.support.erasing import ALICE, OTHERS, PLAIN, REJECTS, ROWS, check_tidy, deliver, erase, holding, others
from tests.support.harness import DiedError, Harness, dying_at
from tests.support.rebuilding import rebuild
from tests.support.redriving import line_limit, redrive


def die(_step: RedriveCrashPoint, _manifest_id: str) -> None:
    raise DiedError


def compacted(max_columns: int = 10) -> Harness:
    harness = Harness(schema={"max_columns": max_columns})
    deliver(harness)
    harness.run_once()
    return harness


@pytest.mark.parametrize("max_columns", [10, 1], ids=["column", "rescued"])
def test_nothing_holds_it(max_columns: int) -> None:
    """Rows, rejects and input of one person go, however they were written; all others stay, and verify adds up."""
    harness = compacted(max_columns)
    kept = others(harness)
    report = erase(harness)
    assert [(each.manifest_id, each.rows, each.rejected_lines, each.generation) for each in report.erased] == [
        ("m1", ROWS, REJECTS, 2),
        ("m2", ROWS, REJECTS, 2),
    ]
    assert (report.searched, len(report.inputs), report.left, report.discrepancies) == (3, 8, 0, ())
    assert holding(harness) == []
    assert (harness.output_rows(), harness.rejects()) == kept
    found = harness.verification()
    assert (found.lines, found.erased_lines) == (26, 2 * (ROWS + REJECTS))
    assert found.rows + found.rejected_lines + found.blank_lines + found.erased_lines == found.lines
    assert (found.inputs_erased, found.inputs_compared) == (8, 1)
    check_tidy(harness)
    again = erase(harness)
    assert (again.erased, again.inputs, again.left) == ((), (), 0)


def test_input_is_kept_unless_asked() -> None:
    """Then it is named, with what to do; a later call still finds it."""
    harness = compacted()
    report = erase(harness, inputs="keep")
    assert (report.left, {each.deleted for each in report.inputs}) == (8, {False})
    assert len(holding(harness)) == 8
    assert erase(harness, inputs="keep").left == 8
    assert erase(harness).left == 0
    assert holding(harness) == []


def test_a_dry_run_writes_nothing() -> None:
    """It tells the same."""
    harness = compacted()
    before = {info.uri: info.etag for info in harness.store.list("/w/")}
    report = erase(harness, dry_run=True)
    assert (len(report.erased), len(report.inputs), report.left, report.erasure) == (2, 8, 0, "")
    assert {info.uri: info.etag for info in harness.store.list("/w/")} == before


@pytest.mark.parametrize("with_table", [False, True], ids=["files", "table"])
def test_every_place_that_was_searched_is_on_record(*, with_table: bool) -> None:
    """With how much was there; a dry run reports those that it searched, and writes nothing."""
    harness = Harness(schema={"max_columns": 10}, table={} if with_table else None)
    deliver(harness)
    harness.run_once()
    searched = {
        ("rows", "/w/output/"): sum(len(harness.commit(name).outputs) for name in ("m1", "m2", "m3")),
        ("rejects", "/w/state/rejects/"): 3,
        ("names", "/w/state/ledger/"): 3,
        ("letters", "/w/state/failed/"): 0,
        ("input", "/w/raw/"): 8,  # that of the manifest without a value cannot contain one
        ("input", "/w/state/redriven/"): 0,
    }
    assert places(erase(harness, dry_run=True).places) == searched
    harness.store.put(f"{harness.layout.staging_folder}m3/left", b"")
    report = erase(harness)
    own = {("staging", "/w/state/staging/"): 1, **({("table", "lake.events"): 1} if with_table else {})}
    temporary = dict.fromkeys(
        (("temporary", place) for place in ("/w/output/", "/w/state/", "/w/manifests/", f"{gettempdir()}/")), 0
    )
    assert places(report.places) == searched | own | temporary
    [done] = ended(harness)
    assert done.places == report.places


def places(found: Sequence[SearchedPlace]) -> dict[tuple[str, str], int]:
    return {(each.what, each.place): each.objects for each in found}


def test_it_is_on_record() -> None:
    """Who asked, for what key, and how much went; of the values only their number."""
    harness = compacted()
    report = erase(harness, ALICE, "zoe")
    [done] = ended(harness)
    assert (done.id, done.by) == (report.erasure, "privacy")
    assert (done.key, done.values, done.inputs) == ("user_id", 2, "delete")
    assert [(each.manifest_id, each.rows) for each in done.manifests] == [("m1", ROWS), ("m2", ROWS)]
    assert (done.deleted_inputs, done.left) == (8, 0)
    erased = harness.commit("m1").erased
    assert erased is not None
    assert (erased.erasures, erased.rows) == ([report.erasure], ROWS)


@pytest.mark.parametrize("dies", [False, True], ids=["ends", "dies"])
def test_a_call_that_only_seemed_dead(*, dies: bool) -> None:
    """Another one does not tell for it what it may still erase; it tells itself, or a later one does."""
    harness, beside = compacted(), list[str]()

    def on_crash_point(step: CrashPoint, manifest_id: str) -> None:
        if step is CrashPoint.ATTEMPTED and manifest_id == "m2" and not beside:
            beside.append(erase(harness, "zoe").erasure)
        if step is CrashPoint.DECIDED and manifest_id == "m2" and dies:
            raise DiedError

    with suppress(DiedError):
        erase(harness, on_crash_point=on_crash_point)
    erase(harness)
    [done] = [each for each in ended(harness) if each.manifests]
    assert ([each.manifest_id for each in done.manifests], done.died) == (["m1", "m2"], dies)
    assert done.id not in beside


def ended(harness: Harness) -> list[Erasure]:
    """What is on record of erasures that are over."""
    listed = harness.store.list(harness.layout.changes_folder(Why.ERASED))
    return [harness.ledger.record(info.uri, Erasure) for info in listed]


def test_an_outcome_that_cannot_be_read_for_a_while() -> None:
    """What an erasure that died took is told once it can be read, not left out for ever."""
    harness = compacted()
    with suppress(DiedError):
        erase(harness, on_crash_point=dying_at(CrashPoint.DECIDED))
    outcome = harness.layout.outcome(harness.commit("m1").key, 2)
    kept = harness.store.read(outcome)
    harness.store.put(outcome, b"{")
    erase(harness, "zoe")
    harness.store.put(outcome, kept)
    erase(harness)
    dead = [each for each in ended(harness) if each.died]
    assert [[each.manifest_id for each in one.manifests] for one in dead] == [["m1", "m2"]]


def test_a_second_person() -> None:
    """The commit has both erasures, and the sum of their rows."""
    harness = compacted()
    first, second = erase(harness), erase(harness, "bob")
    erased = harness.commit("m1").erased
    assert erased is not None
    assert (erased.erasures, erased.rows) == ([first.erasure, second.erasure], ROWS + 1)
    assert holding(harness, "bob") == []
    check_tidy(harness)


def test_erased_rows_do_not_come_back() -> None:
    """No rebuild makes the manifest again from an input that was kept."""
    harness = compacted()
    erase(harness, inputs="keep")
    lost = harness.commit("m1").outputs[0].final
    harness.store.delete([lost])
    assert ["erased on request" in each.why for each in rebuild(harness).refused] == [True]
    assert rebuild(harness, "m2", force=True).rebuilt == ()
    assert operating.rebuild_scanner(harness.app()).scan(("m3",)).refused == ()


def test_all_rows_of_a_file() -> None:
    """A file without rows goes; a manifest may have none left."""
    harness = Harness()
    harness.deliver("m1", PLAIN.splitlines(keepends=True)[0])
    harness.run_once()
    assert erase(harness).left == 0
    assert (harness.commit("m1").outputs, harness.output_rows()) == ([], Counter())
    assert holding(harness) == []
    check_tidy(harness)


def test_work_that_is_not_done_is_named() -> None:
    """What comes later has to be asked for again."""
    harness = compacted()
    harness.deliver("m4", PLAIN)
    assert ["1 delivered manifests" in each.why for each in erase(harness).refused] == [True]
    harness.run_once()
    assert erase(harness).left == 0
    assert holding(harness) == []


def test_damaged_files_are_named() -> None:
    """What cannot be searched may hold a value; all other manifests are erased."""
    harness = compacted()
    uri = harness.commit("m1").outputs[0].final
    data = harness.store.read(uri)
    pages = len(data) - 8 - int.from_bytes(data[-8:-4], "little")  # the footer is whole
    harness.store.put(uri, b"PAR1".ljust(pages, b"\xff") + data[pages:])
    report = erase(harness)
    assert [(each.manifest_id, "cannot be read" in each.why) for each in report.refused] == [("m1", True)]
    assert [each.manifest_id for each in report.erased] == ["m2"]


def test_input_of_what_could_not_be_erased() -> None:
    """A file is damaged where nothing was searched: the input stays, for `rebuild`; then the next call takes all."""
    harness = compacted()
    uri = harness.commit("m1").outputs[0].final
    data = harness.store.read(uri)
    harness.store.put(uri, b"PAR1".ljust(60, b"\xff") + data[60:])  # the pages of the first column
    report = erase(harness)
    assert [each.manifest_id for each in report.failed] == ["m1"]
    assert Counter(each.deleted for each in report.inputs) == {True: 4, False: 4}
    assert rebuild(harness, "m1", force=True).rebuilt
    assert erase(harness).left == 0
    assert holding(harness) == []
    check_tidy(harness)


def test_nothing_is_there_yet() -> None:
    """An empty state holds nothing."""
    report = erase(Harness())
    assert (report.searched, report.left) == (0, 0)


def test_quarantined_input_is_named() -> None:
    """No output has its other lines, so it is not deleted."""
    harness = Harness(reading={"max_rejected_lines": 1})
    harness.deliver("m1", PLAIN, b"no\nno\n" + PLAIN)
    harness.run_once()
    report = erase(harness)
    assert [(each.deleted, "redrive" in each.why) for each in report.inputs] == [(True, False), (False, True)]
    assert holding(harness) == [harness.commit("m1").files[1].uri]
    check_tidy(harness)


def test_redriven_lines() -> None:
    """The copy of a redriven line goes from the rejects, from the copy, and from the rows that it became."""
    harness = Harness()
    line = b'{"user_id": "%s", "t": "%s"}\n' % (ALICE.encode(), b"x" * 30)
    harness.deliver("m1", OTHERS + line)
    with line_limit(harness, 40):
        harness.run_once()
    assert len(redrive(harness, "rejects", reason="line_too_long").redriven) == 1
    harness.run_once()
    before = harness.verification()
    assert (before.rows, before.rejected_lines) == (2, 1)
    report = erase(harness)
    assert {each.manifest_id: (each.rows, each.rejected_lines) for each in report.erased} == {
        "m1": (0, 1),
        "m1-r1": (1, 0),
    }
    assert (report.left, holding(harness)) == (0, [])
    after = harness.verification()
    assert (after.rows, after.rejected_lines, after.erased_lines, after.lines) == (1, 1, 1, 3)
    check_tidy(harness)


def test_redriven_lines_whose_rows_are_being_rebuilt() -> None:
    """Their manifest still has them, so the same erasure does not count them as rejects as well."""
    harness = Harness()
    harness.deliver("m1", OTHERS + b'{"user_id": "%s", "t": "%s"}\n' % (ALICE.encode(), b"x" * 30))
    with line_limit(harness, 40):
        harness.run_once()
    redrive(harness, "rejects", reason="line_too_long")
    harness.run_once()
    state = harness.app().state

    def taken() -> list[str]:
        return [each.uri for each in redriven_lines(state, account_of(state, "m1", Detail.LINEAGE)).inputs]

    def die_there(step: CrashPoint, manifest_id: str) -> None:
        if (step, manifest_id) == (CrashPoint.DECIDED, "m1-r1"):
            raise DiedError

    before = taken()
    with suppress(DiedError):
        erase(harness, on_crash_point=die_there)
    assert len(before) == 1
    assert not harness.ledger.is_done(harness.commit("m1-r1").key, 2)
    assert taken() == before


def test_lines_of_a_manifest_that_cannot_be_searched_stay() -> None:
    """Its rows can be made again only of them; they go once they are readable."""
    harness = Harness()
    harness.deliver("m1", b'{"user_id": "%s", "t": "%s"}\n' % (ALICE.encode(), b"x" * 30))
    with line_limit(harness, 40):
        harness.run_once()
    assert len(redrive(harness, "rejects", reason="line_too_long").redriven) == 1
    harness.run_once()
    [rows] = [info.uri for info in harness.store.list(f"{harness.layout.output}/") if info.uri.endswith(".parquet")]
    whole = harness.store.read(rows)
    harness.store.put(rows, b"damaged")
    report = erase(harness)
    assert [each.manifest_id for each in report.refused] == ["m1-r1"]
    [copy] = [each for each in report.inputs if "/redriven/" in each.uri]
    assert (copy.deleted, harness.store.stat(copy.uri) is not None) == (False, True)
    harness.store.put(rows, whole)
    assert (erase(harness).left, holding(harness)) == (0, [])


def test_copies_of_a_redrive_that_died() -> None:
    """They are named if a redrive may be at work; those of a manifest that is done go, whether it names them or not."""
    harness = Harness()
    harness.deliver("m1", b'{"user_id": "%s", "t": "%s"}\n' % (ALICE.encode(), b"x" * 30))
    with line_limit(harness, 40):
        harness.run_once()
    with pytest.raises(DiedError):
        redrive(harness, "rejects", on_crash_point=die)
    [copy] = [each for each in erase(harness, inputs="keep").inputs if "/redriven/" in each.uri]
    assert (copy.deleted, "redrive" in copy.why) == (False, True)
    harness.deliver("m2", b'{"user_id": "%s", "t": "%s"}\n' % (ALICE.encode(), b"x" * 30))
    harness.store.copy(copy.uri, f"{harness.layout.redriven_inputs('m2', 'other')}a.ndjson")
    harness.run_once()
    left = [each for each in erase(harness).inputs if not each.deleted]
    assert [each.uri for each in left] == [copy.uri]
    assert holding(harness) == [copy.uri]


def test_closed_dates() -> None:
    """A manifest of a closed date is erased, and comes into the sums with the next closing."""
    harness = compacted()
    harness.clock.advance(10 * 24 * 3600)
    assert operating.closer(harness.app()).close().summarised
    erase(harness)
    found = operating.verifier(harness.app()).verify_all()
    assert (found.closed_dates, found.erased_lines, found.discrepancies) == (1, 2 * (ROWS + REJECTS), [])
    harness.clock.advance(10 * 24 * 3600)
    operating.closer(harness.app()).close()
    summed = operating.verifier(harness.app()).verify_all()
    assert (summed.erased_lines, summed.rows, summed.discrepancies) == (2 * (ROWS + REJECTS), found.rows, [])
