"""Redriving what was redriven before, and in part: every line stays once."""

import pytest

from compactor.core.documents.records import FileStatus
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Kind
from compactor.ledger.history.redrive_log import RedriveLog
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.memory_store import MemoryClaims
from tests.support.redriving import (
    CASES,
    LEASE_SECONDS,
    LONG,
    SHORT_LINES,
    check,
    dead_letter,
    exhaust,
    line_limit,
    new_harness,
    new_ids,
    plan,
    quarantined,
    redrive,
    rejected,
    whys,
)


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def test_dead_letter_again(harness: Harness) -> None:
    """A redriven manifest that is a dead letter again is redriven under the next number of the same root."""
    source = dead_letter(harness)
    for number in (1, 2, 3):
        assert new_ids(redrive(harness, "manifests")) == [f"{source}-r{number}"]
        if number < 3:
            exhaust(harness)
    harness.run_once()
    harness.check_exact()
    names = harness.ledger.record_names(ManifestKey(DAY, source))
    assert {name for name in names if name.startswith("redrive-")} == {f"redrive-{number}.json" for number in (1, 2, 3)}


def test_redriven_rejects_become_a_dead_letter(harness: Harness) -> None:
    """Redriven lines whose manifest is a dead letter are redriven with it: the whole lineage shares their files."""
    source = rejected(harness)
    redrive(harness, "rejects")
    exhaust(harness)
    assert new_ids(redrive(harness, "manifests")) == [f"{source}-r2"]
    harness.run_once()
    check(harness, "rejects")


def test_rejects_that_are_rejected_again() -> None:
    """Redriven lines that are rejected again keep file, number and bytes, are counted once, and can be redriven again.

    So does a line of a file with a byte order mark, and one that begins like compressed data.
    """
    harness = new_harness(schema={"metadata_columns": ["_source_file"]})
    contents = b"\n\n" + LONG + b"\n" + GOOD + LONG, b"\xef\xbb\xbf" + LONG + b"\n\x1f\x8b\x08no json\n"
    source = rejected(harness, *contents)
    first = harness.rejects()
    before = harness.verification()
    for number in (1, 2):
        report = redrive(harness, "rejects")
        assert new_ids(report) == [f"{source}-r{number}"]
        assert report.unchanged == {"invalid_utf8": 1}
        with line_limit(harness, SHORT_LINES.max_line_bytes):
            harness.run_once()
        assert set(harness.rejects()) == set(first)
        again = harness.verification()
        assert (again.discrepancies, again.lines, again.input_files) == ([], before.lines, before.input_files)
        assert (again.rejected_lines, again.rejects_by_reason) == (before.rejected_lines, before.rejects_by_reason)
    log = RedriveLog(state=harness.app().state).entries_about(source)
    assert [entry.redrive.source for entry in log] == [source, f"{source}-r1"]
    named = [{each.source_uri for each in entry.redrive.inputs} for entry in log]
    assert named == [{f"/w/raw/{DAY}-0.ndjson", f"/w/raw/{DAY}-1.ndjson"}] * 2
    assert new_ids(redrive(harness, "rejects")) == [f"{source}-r3"]
    harness.run_once()
    done = harness.verification()
    assert (done.discrepancies, done.lines, done.rows) == ([], before.lines, before.rows + 3)
    assert (done.rejected_lines, done.rejects_by_reason) == (1, {"invalid_utf8": 1})


def test_unchanged_lines_grow_nothing(harness: Harness) -> None:
    """Lines that are as wrong as before are refused, and nothing is written."""
    harness.deliver("m1", FLAWED, b"\xef\xbb\xbf{}\nno json either\n\xff\n")
    harness.run_once()
    before = {info.uri for info in harness.store.list("/w/")}
    for dry_run in (True, False, False):
        report = redrive(harness, "rejects", dry_run=dry_run)
        assert (report.redriven, report.unchanged.total()) == ((), 4)
        assert whys(report) == ["4 lines still invalid: 2 invalid_json, 1 invalid_utf8, 1 not_an_object"]
    assert {info.uri for info in harness.store.list("/w/")} == before


def test_rejects_by_reason(harness: Harness) -> None:
    """Each reason of a manifest is redriven by itself, and each line once."""
    source = rejected(harness, FLAWED + LONG, LONG)
    assert redrive(harness, "rejects", reason="invalid_json").unchanged == {"invalid_json": 1}
    first = redrive(harness, "rejects", source)
    assert [(each.manifest_id, each.counts, each.files) for each in first.redriven] == [
        (f"{source}-r1", {"line_too_long": 2}, 2)
    ]
    assert first.unchanged == {"invalid_json": 1, "not_an_object": 1}
    assert redrive(harness, "rejects").redriven == ()


def test_a_part_of_the_lines(harness: Harness) -> None:
    """Lines that fit by now are redriven; the others stay, and are redriven when they fit."""
    longer = LONG.replace(b"x", b"xx")
    source = rejected(harness, LONG + b"\n" + longer + b"\n" + GOOD + LONG, longer)
    limits = (len(LONG), len(longer))
    for number, limit in enumerate(limits, start=1):
        with line_limit(harness, limit):
            report = redrive(harness, "rejects")
            harness.run_once()
        assert [(each.manifest_id, each.counts) for each in report.redriven] == [
            (f"{source}-r{number}", {"line_too_long": 2})
        ]
        assert harness.verification().rejected_lines == 4 - 2 * number
    assert harness.verification().discrepancies == []
    assert redrive(harness, "rejects").redriven == ()


def test_a_new_version_belongs_to_its_own_event(harness: Harness) -> None:
    """A file that came back as a new version, and was planned again, is left to its new manifest."""
    source = quarantined(harness)
    plan(harness)
    report = redrive(harness, "files")
    assert (report.redriven, [each.uri for each in report.refused]) == ((), [f"/w/raw/{DAY}-1.ndjson"])
    harness.run_once()
    assert redrive(harness, "files", source).redriven == ()
    check(harness, "files")


def test_still_missing(harness: Harness) -> None:
    """A file that is still missing is refused, and stays for later."""
    source = quarantined(harness)
    harness.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    report = redrive(harness, "files")
    [why] = whys(report)
    assert (report.redriven, why.partition(";")[0]) == ((), "there is no such object")
    assert "`compactor dismiss`" in why
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    assert new_ids(redrive(harness, "files")) == [f"{source}-r1"]
    harness.run_once()
    check(harness, "files")


def test_a_planner_takes_nothing_that_was_redriven(harness: Harness) -> None:
    """A redrive claims a file that was never planned, so that no later planner plans it."""
    harness.file(f"{DAY}-a", GOOD)
    harness.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/%b-a"]}]}' % DAY.encode())
    exhaust(harness)
    redrive(harness, "manifests")
    for _ in range(2):
        harness.clock.advance(LEASE_SECONDS + 1)
        assert plan(harness) == 0
        harness.run_once()
    harness.check_exact()


@pytest.mark.parametrize("kind", ["manifests", "files"])
def test_forgotten_claims(harness: Harness, kind: Kind) -> None:
    """When the claims are forgotten, no planner takes what was redriven, because the ledger knows it."""
    CASES[kind](harness)
    redrive(harness, kind)
    harness.run_once()
    harness.clock.advance(91 * 86_400)
    harness.claims = MemoryClaims()
    assert plan(harness) == 0
    check(harness, kind)


def test_scope(harness: Harness) -> None:
    """Ids, a reason and a date each narrow down what is redriven."""
    for name, content in (("m1", GOOD), ("m2", FLAWED)):
        harness.deliver(name, content)
    exhaust(harness)
    harness.put_manifest("2026-01-05.json", b"{")
    harness.run_once()
    assert redrive(harness, "manifests", date="2026-01-01").redriven == ()
    assert redrive(harness, "manifests", reason="nested").redriven == ()
    assert new_ids(redrive(harness, "manifests", "m2")) == ["m2-r1"]
    assert whys(redrive(harness, "manifests", reason="not_json"))[0].startswith("not_json: ")
    report = redrive(harness, "manifests", reason="retries_exhausted", date=DAY)
    assert (new_ids(report), report.refused) == (["m1-r1"], ())
    harness.run_once()
    harness.check_exact()


def test_an_id_that_looks_redriven(harness: Harness) -> None:
    """A manifest whose own id ends in -r1 is the root of its own lineage."""
    harness.deliver("m1", GOOD)
    harness.deliver("m1-r1", FLAWED)
    exhaust(harness)
    assert sorted(map(str, new_ids(redrive(harness, "manifests")))) == ["m1-r1-r1", "m1-r2"]
    harness.run_once()
    harness.check_exact()


def test_a_file_that_is_missing_again(harness: Harness) -> None:
    """A file that is quarantined again after its redrive can be redriven again, and then its rows are there."""
    source = quarantined(harness)
    uri = f"/w/raw/{DAY}-1.ndjson"
    assert new_ids(redrive(harness, "files")) == [f"{source}-r1"]
    harness.store.delete([uri])
    harness.run_once()
    assert harness.commit(f"{source}-r1").files[0].status is FileStatus.MISSING
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    report = redrive(harness, "files")
    assert [(each.source, each.manifest_id, each.counts) for each in report.redriven] == [
        (f"{source}-r1", f"{source}-r2", {"missing": 1})
    ]
    harness.run_once()
    check(harness, "files")
