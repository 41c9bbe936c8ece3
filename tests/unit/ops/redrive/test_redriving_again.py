"""Redriving what was redriven before, and in part: every line stays once."""

from collections import Counter

import pytest

from compactor.adapters.memory.store import MemoryClaims
from compactor.core.manifest_key import ManifestKey
from compactor.core.records import FileStatus
from compactor.ops.redrive.selection import Kind
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.redriving import (
    CASES,
    LEASE_SECONDS,
    check,
    dead_letter,
    exhaust,
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


def test_rejects_that_are_rejected_again(harness: Harness) -> None:
    """Lines that are rejected again keep their bytes, and can be redriven again; the log leads back to the source."""
    harness.deliver("m1", FLAWED, b"\xef\xbb\xbf{}\nno json either\n\xff\n")
    harness.run_once()
    lines = Counter(raw for _, _, raw in harness.rejects())
    redrive_log = harness.app().redrive_log
    for number in (1, 2):
        report = redrive(harness, "rejects")
        assert new_ids(report) == [f"m1-r{number}"]
        harness.run_once()
        again = Counter(raw for uri, _, raw in harness.rejects() if f"/redriven/m1-r{number}/" in uri)
        assert again == lines
    root = redrive_log.root_of("m1-r2")
    assert root is not None
    first, second = [entry.redrive for entry in redrive_log.entries(root)]
    assert [each.source_uri for each in first.inputs] == ["/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"]
    assert [each.source_uri for each in second.inputs] == [each.uri for each in first.inputs]
    assert (first.source, second.source) == ("m1", "m1-r1")
    assert harness.verification().discrepancies == []


def test_rejects_by_reason(harness: Harness) -> None:
    """Each reason of a manifest is redriven once; what is left is another redrive."""
    harness.deliver("m1", FLAWED, b"5\n")
    harness.run_once()
    first = redrive(harness, "rejects", reason="invalid_json")
    assert [(each.manifest_id, each.counts, each.files) for each in first.redriven] == [
        ("m1-r1", {"invalid_json": 1}, 1)
    ]
    second = redrive(harness, "rejects", "m1")
    assert [(each.manifest_id, each.counts, each.files) for each in second.redriven] == [
        ("m1-r2", {"not_an_object": 2}, 2)
    ]
    assert redrive(harness, "rejects").redriven == []


def test_a_new_version_belongs_to_its_own_event(harness: Harness) -> None:
    """A file that came back as a new version, and was planned again, is left to its new manifest."""
    source = quarantined(harness)
    plan(harness)
    report = redrive(harness, "files")
    assert (report.redriven, [each.uri for each in report.refused]) == ([], [f"/w/raw/{DAY}-1.ndjson"])
    harness.run_once()
    assert redrive(harness, "files", source).redriven == []
    check(harness, "files")


def test_still_missing(harness: Harness) -> None:
    """A file that is still missing is refused, and stays for later."""
    source = quarantined(harness)
    harness.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    report = redrive(harness, "files")
    assert (report.redriven, whys(report)) == ([], ["there is no such object; expected it to be there by now"])
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
    assert redrive(harness, "manifests", date="2026-01-01").redriven == []
    assert redrive(harness, "manifests", reason="nested").redriven == []
    assert new_ids(redrive(harness, "manifests", "m2")) == ["m2-r1"]
    assert whys(redrive(harness, "manifests", reason="not_json"))[0].startswith("not_json: ")
    report = redrive(harness, "manifests", reason="retries_exhausted", date=DAY)
    assert (new_ids(report), report.refused) == (["m1-r1"], [])
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
