"""`verify` finds files whose rows are there twice, in bounded memory, and takes nothing else for such files."""

import random
import tracemalloc
from collections import Counter
from datetime import UTC, datetime

import pytest

from compactor.core.documents.changes import Commit
from compactor.core.documents.records import FileReport, FileStatus
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.ops.verify import grouping
from compactor.ops.verify.doubled import add_versions, doubled_files, version_digest
from compactor.ops.verify.grouping import GroupedOnDisk
from compactor.ops.verify.verifier import Discrepancy, VerifyResult
from compactor.wiring import operating
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.redriving import LONG, line_limit

OTHER_DAY = "2026-01-01"


def deliver(harness: Harness, manifest_id: str, *names: str, day: str = DAY) -> None:
    """A manifest of another program, which claims nothing."""
    files = [harness.named(f"/w/raw/{name}") for name in names]
    manifest = harness.manifest(manifest_id, files).model_copy(update={"date": day})
    harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
    harness.run_once()


def doubled(report: VerifyResult) -> list[Discrepancy]:
    return [each for each in report.discrepancies if each.expected == "the rows of each file version once"]


@pytest.fixture
def harness() -> Harness:
    harness = Harness()
    for name in "abc":
        harness.file(f"{name}.ndjson", GOOD)
    return harness


def test_a_file_in_two_manifests(harness: Harness) -> None:
    """Both manifests are named with one of the files, for a date and for everything, and an operator is needed."""
    deliver(harness, "m1", "a.ndjson", "b.ndjson", "c.ndjson")
    deliver(harness, "m2", "b.ndjson", "c.ndjson")
    deliver(harness, "m3", "c.ndjson", day=OTHER_DAY)
    verifier = operating.verifier(harness.app())
    first, second = doubled(verifier.verify_all()), doubled(verifier.verify_date(DAY))
    assert [(each.manifest_id, each.found) for each in second] == [
        ("m2", "compacted by manifest m1 as well, and 1 more files of both")
    ]
    assert second[0].where in {"/w/raw/b.ndjson", "/w/raw/c.ndjson"}
    # The first date comes first.
    assert Counter((each.manifest_id, each.found.split(",")[0]) for each in first) == {
        ("m2", "compacted by manifest m1 as well"): 1,
        ("m1", "compacted by manifest m3 as well"): 1,
        ("m2", "compacted by manifest m3 as well"): 1,
    }
    assert verifier.verify_date(DAY).needs_operator
    assert doubled(verifier.verify_date(OTHER_DAY)) == []


def test_another_version_is_another_file(harness: Harness) -> None:
    """A file that was written again has rows of both versions, as it should."""
    deliver(harness, "m1", "a.ndjson")
    harness.file("a.ndjson", FLAWED)
    deliver(harness, "m2", "a.ndjson")
    assert doubled(harness.verification()) == []


def test_a_touched_file_is_the_same_file() -> None:
    """The version of a local file is its bytes, and that of an object its ETag."""
    local = [FileReport(uri="/w/raw/a", status=FileStatus.COMPACTED, etag=etag, digest="d") for etag in ("1-5", "2-5")]
    on_s3 = [FileReport(uri="s3://b/a", status=FileStatus.COMPACTED, etag=etag) for etag in ("e1", "e2")]
    assert len({version_digest(each) for each in local}) == 1
    assert len({version_digest(each) for each in on_s3}) == 2


@pytest.mark.parametrize("kind", ["rejects", "files", "manifests"])
def test_what_is_redriven_is_not_there_twice(harness: Harness, kind: Kind) -> None:
    """Redriven lines, quarantined files and dead letters have their rows once."""
    harness.file("flawed.ndjson", FLAWED + LONG)
    names = ["flawed.ndjson", "a.ndjson"]
    if kind == "manifests":
        harness.settings = Harness(stream={"max_attempts": 2}).settings
    files = [harness.named(f"/w/raw/{name}") for name in names]
    named = files if kind != "manifests" else [*files, files[0].model_copy(update={"uri": "/w/raw/../x"})]
    harness.put_manifest("m1.json", harness.manifest("m1", named).to_json())
    store = FaultyStore(harness.store)
    if kind == "files":
        store.deny("/w/raw/a.ndjson")
    with line_limit(harness, 40):
        harness.run_once(store=store)
    if kind == "manifests":
        uri = harness.layout.failed_manifest("m1")
        harness.store.put(uri, harness.manifest("m1", files).to_json())
    app = harness.app()
    operating.redriver(app).redrive(find_redrivable(app.state, Scope(kind)))
    harness.run_once()
    assert len(list(harness.ledger.manifests())) == 2
    assert doubled(harness.verification()) == []


def commit_of(manifest_id: str, uris: list[str]) -> Commit:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    return Commit(
        manifest_id=manifest_id,
        date=DAY,
        attempt=1,
        run_id="r",
        engine="native",
        schema_version=1,
        outputs=[],
        rejects=[],
        files=[FileReport(uri=uri, status=FileStatus.COMPACTED, etag="e") for uri in uris],
        max_line_bytes=1,
        max_decompressed_bytes=1,
        started_at=now,
        decided_at=now,
    )


@pytest.mark.parametrize("run_entries", [1, 7, 1000])
def test_sorting_on_disk(harness: Harness, monkeypatch: pytest.MonkeyPatch, run_entries: int) -> None:
    """However often entries are written to disk, exactly the files of two manifests are found."""
    monkeypatch.setattr(grouping, "LINES_AT_ONCE", run_entries)
    monkeypatch.setattr(grouping, "_BLOCK_BYTES", 300)
    drawn = random.Random(0)
    commits = [commit_of(f"m{number}", drawn.sample([f"/w/raw/{n}" for n in range(500)], 10)) for number in range(40)]
    for commit in commits:
        harness.ledger.decide(commit)
    named = dict[str, list[str]]()
    for commit in commits:
        for file in commit.files:
            named.setdefault(file.uri, []).append(commit.manifest_id)
    expected = {(min(ids), other) for ids in named.values() for other in ids if other != min(ids)}
    with GroupedOnDisk(ManifestKey) as versions:
        for commit in commits:
            add_versions(versions, commit)
        found = list(doubled_files(harness.app().state, versions))
    assert {(each.found.split()[3], each.manifest_id) for each in found} == expected
    assert all(len(named[each.where]) > 1 for each in found)


def test_memory_does_not_grow_with_files(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of many files is on disk."""
    monkeypatch.setattr(grouping, "LINES_AT_ONCE", 500)
    monkeypatch.setattr(grouping, "_BLOCK_BYTES", 1000)
    peaks: list[int] = []
    for manifests in (10, 60):
        tracemalloc.start()
        with GroupedOnDisk(ManifestKey) as versions:
            for number in range(manifests):
                add_versions(versions, commit_of(f"m{number}", [f"/w/raw/{number}-{each}" for each in range(200)]))
            assert list(doubled_files(harness.app().state, versions)) == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 3 * peaks[0]
