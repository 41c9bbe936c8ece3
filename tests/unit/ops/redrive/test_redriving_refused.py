"""What a redrive refuses, with the reason: files that other manifests have, and manifests that are not ready."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pyarrow.parquet as pq
import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import Accepted, FileStatus
from compactor.core.layout import ManifestKey
from compactor.core.ports import Claim
from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import Refused, find_redrivable
from compactor.settings.settings import load_settings
from compactor.sources.claiming import claim_key
from compactor.wiring import operating, streaming
from compactor.wiring.app import App
from tests.support.extras import NATIVE
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.memory_store import MemoryClaims
from tests.support.redriving import (
    LONG,
    SHORT_LINES,
    FailingEngine,
    check,
    exhaust,
    line_limit,
    new_harness,
    new_ids,
    quarantined,
    redrive,
    rejected,
    whys,
)
from tests.support.settings_files import write_settings

KINDS: tuple[Kind, ...] = get_args(Kind)


@pytest.fixture
def harness() -> Harness:
    return new_harness()


@pytest.mark.parametrize(("found", "why"), [("nothing", "no such object"), ("other", "hold 0 lines, expected 2 as")])
def test_rejects_that_do_not_add_up(harness: Harness, found: str, why: str) -> None:
    """Rejects that differ from the commit are refused, and no file is left behind."""
    harness.deliver("m1", FLAWED)
    harness.deliver("m2", LONG)
    with line_limit(harness, SHORT_LINES.max_line_bytes):
        harness.run_once()
    [rejects], [others] = harness.commit("m1").rejects, harness.commit("m2").rejects
    if found == "nothing":
        harness.store.delete([rejects.final])
    else:
        harness.store.copy(others.final, rejects.final)
    report = redrive(harness, "rejects")
    assert (new_ids(report), [why in each for each in whys(report)]) == (["m2-r1"], [True])
    assert [info.uri for info in harness.store.list("/w/state/redriven/m1-r1/")] == []


def test_still_wrong(harness: Harness) -> None:
    """A dead letter is checked by the settings of today: refused while it is wrong, redriven when it is not."""
    harness.store.put("/w/elsewhere/a", GOOD)
    harness.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/elsewhere/a"]}]}')
    harness.put_manifest("m2.json", b"{")
    harness.run_once()
    report = redrive(harness, "manifests")
    assert [each.partition(":")[0] for each in whys(report)] == ["outside_allowed_prefixes", "not_json"]
    allowed = harness.settings.input.model_copy(update={"allowed_prefixes": ("/w/raw", "/w/elsewhere")})
    harness.settings = replace(harness.settings, input=allowed)
    report = redrive(harness, "manifests")
    assert (new_ids(report), len(report.refused)) == (["m1-r1"], 1)
    harness.run_once()
    harness.check_exact(["/w/elsewhere/a"])


@pytest.mark.parametrize("with_claims", [True, False])
def test_two_letters_of_the_same_file(harness: Harness, with_claims: bool) -> None:
    """Two dead letters that name the same file: one gets it, and the refusal of the other names that one."""
    harness.file("a", GOOD)
    for name in ("m1", "m2"):
        harness.put_manifest(f"{name}.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a"]}]}')
    exhaust(harness)
    report = redrive(harness, "manifests", with_claims=with_claims)
    assert new_ids(report) == ["m1-r1"]
    assert "m1-r1" in whys(report)[0]
    again = redrive(harness, "manifests", with_claims=with_claims)
    assert (again.redriven, ["m1-r1" in why for why in whys(again)]) == ((), [True])
    harness.run_once()
    again = redrive(harness, "manifests", with_claims=with_claims)
    assert (again.redriven, whys(again), ["m1-r1" in each.fate for each in again.settled]) == ((), [], [True])
    harness.check_exact()


@pytest.mark.parametrize("with_claims", [True, False])
def test_a_file_that_has_rows(harness: Harness, with_claims: bool) -> None:
    """A file that another manifest has compacted is left out, and the rest is redriven."""
    files = [harness.file(name, GOOD) for name in ("a", "b")]
    uris = b'["/w/raw/a", "/w/raw/b"]'
    harness.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": %b}]}' % uris)
    exhaust(harness)
    if with_claims:
        harness.claims.claim([claim_key(files[0])], "m2", now=harness.clock.now(), lease_seconds=1)
    harness.put_manifest("m2.json", harness.manifest("m2", files[:1]).to_json())
    harness.run_once()
    report = redrive(harness, "manifests", with_claims=with_claims)
    assert [(each.manifest_id, each.files) for each in report.redriven] == [("m1-r1", 1)]
    assert [(each.uri, "manifest m2 " in each.why) for each in report.refused] == [("/w/raw/a", True)]
    harness.run_once()
    harness.check_exact()
    assert redrive(harness, "manifests", with_claims=with_claims).refused == ()


def test_a_record_that_cannot_be_read(harness: Harness) -> None:
    """If a damaged record hides whether another manifest has a file, the refusal of the file names that record."""
    harness.file("a", GOOD)
    harness.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a"]}]}')
    exhaust(harness)
    harness.deliver("m2", FLAWED)
    harness.run_once()
    place = harness.layout.outcome(ManifestKey(DAY, "m2"))
    kept = harness.store.read(place)
    harness.store.put(place, b"{")
    report = redrive(harness, "manifests")
    assert (report.redriven, [place in why for why in whys(report)]) == ((), [True])
    harness.store.put(place, kept)
    redrive(harness, "manifests")
    harness.run_once()
    harness.check_exact()


def test_a_record_of_another_date_that_cannot_be_read(harness: Harness) -> None:
    """It refuses the files of its own date alone, though one search is made for those of all."""
    for manifest_id, day in (("m1", DAY), ("m2", "2025-11-05")):
        lost = harness.file(f"{manifest_id}.ndjson", GOOD)
        harness.store.delete([lost.uri])
        manifest = harness.manifest(manifest_id, [lost]).model_copy(update={"date": day})
        harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
    manifest = harness.manifest("m3", [harness.file("m3.ndjson", FLAWED)]).model_copy(update={"date": "2025-11-05"})
    harness.put_manifest("m3.json", manifest.to_json())
    harness.run_once()
    for manifest_id in ("m1", "m2"):
        harness.file(f"{manifest_id}.ndjson", GOOD)
    place = harness.layout.outcome(ManifestKey("2025-11-05", "m3"))
    harness.store.put(place, b"{")
    report = redrive(harness, "files")
    assert new_ids(report) == ["m1-r1"]
    assert [each.manifest_id for each in report.refused if place in each.why] == ["m3", "m2"]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_that_another_manifest_holds(harness: Harness, dry_run: bool) -> None:
    """A file that is claimed for another manifest is left to it, also before that is written, and in a dry run."""
    quarantined(harness)
    key = claim_key(harness.named(f"/w/raw/{DAY}-1.ndjson"))
    harness.claims.claim([key], "other", now=harness.clock.now(), lease_seconds=1)
    report = redrive(harness, "files", dry_run=dry_run)
    assert (report.redriven, whys(report)) == ((), ["manifest other has claimed it"])
    assert harness.claims.get_many([key])[key].holder == "other"


def test_revoked_id(harness: Harness) -> None:
    """A manifest of another origin whose id was revoked is never redriven: its files were planned again."""
    file = harness.file("a", GOOD)
    harness.ledger.accept(Accepted(manifest_id="m1", kind="revoked", date=DAY, accepted_at=harness.clock.now()))
    harness.put_manifest("m1.json", harness.manifest("m1", [file]).to_json() + b"\n")
    harness.run_once()
    report = redrive(harness, "manifests")
    assert report.redriven == ()
    assert "revoked by its planner" in whys(report)[0]
    assert "revoked by its planner" in whys(redrive(harness, "manifests", "m1"))[0]


@pytest.mark.parametrize("with_claims", [True, False])
def test_id_already_used(harness: Harness, with_claims: bool) -> None:
    """Of a dead letter whose id was used before, files that the other manifest has compacted are refused."""
    files = [harness.file(name, GOOD) for name in ("a", "b", "c")]
    harness.claims.claim([*map(claim_key, files)], "m1", now=harness.clock.now(), lease_seconds=1)
    harness.put_manifest("m1.json", harness.manifest("m1", files[:2]).to_json())
    harness.run_once()
    harness.put_manifest("other.json", harness.manifest("m1", files[1:]).to_json())
    harness.run_once()
    report = redrive(harness, "manifests", with_claims=with_claims)
    assert [each.files for each in report.redriven] == [1]
    assert [(each.uri, each.why) for each in report.refused] == [("/w/raw/b", "manifest m1 has compacted it")]
    harness.run_once()
    harness.check_exact()


def test_the_same_manifest_in_the_right_place(harness: Harness) -> None:
    """A manifest that was delivered to a wrong folder and to the right one is not compacted twice."""
    file = harness.file("a", GOOD)
    data = harness.manifest("m1", [file]).to_json()
    harness.put_manifest("sub/m1.json", data)
    harness.run_once()
    harness.put_manifest("m1.json", data)
    assert "manifest m1 waits" in whys(redrive(harness, "manifests"))[0]
    harness.run_once()
    [settled] = redrive(harness, "manifests").settled
    assert settled.fate.endswith("manifest m1 has compacted its file")
    harness.check_exact()


@pytest.mark.parametrize("read", ["last", "earlier"])
def test_another_manifest_with_the_versions_of_a_file(harness: Harness, read: str) -> None:
    """It compacted the one that existed, so that nothing is left of a dead letter that names the same versions."""
    file = harness.file("a", GOOD)
    etags = (file.etag, "e2") if read == "last" else ("e2", file.etag)
    file = file.model_copy(update={"etag": etags[0], "other_etags": etags[1:]})
    keys = [claim_key(each) for each in file.versions]
    harness.put_manifest("m1.json", harness.manifest("m1", [file]).to_json())
    exhaust(harness)
    harness.claims.claim(keys, "m2", now=harness.clock.now(), lease_seconds=1)
    scan = find_redrivable(harness.app().state, Scope("manifests"))
    harness.put_manifest("m2.json", harness.manifest("m2", [file]).to_json())
    harness.run_once()
    [settled] = operating.redriver(harness.app()).redrive(scan).settled
    assert settled.fate.endswith("manifest m2 has compacted its file")


def test_what_cannot_be_redriven(harness: Harness) -> None:
    """Every named id without anything to redrive is refused with the reason."""
    harness.deliver("good", GOOD)
    harness.run_once()
    harness.deliver("letter", GOOD)
    exhaust(harness)
    cases: list[tuple[Kind, str, str]] = [
        ("manifests", "good", "it is not a dead letter"),
        ("files", "good", "no files were quarantined"),
        ("rejects", "good", "no lines were rejected"),
        ("files", "letter", "expected `redrive manifests`"),
        ("manifests", "stranger", "has no record of it"),
    ]
    for kind, manifest_id, why in cases:
        report = redrive(harness, kind, manifest_id)
        assert (report.redriven, [why in each for each in whys(report)]) == ((), [True])


def test_not_done_yet(harness: Harness) -> None:
    """A dead letter that is decided but not done is left to the job."""

    def die(found: CrashPoint, _manifest_id: str) -> None:
        if found == CrashPoint.DECIDED:
            raise DiedError

    uri = harness.deliver("m1", GOOD)
    for _ in range(2):
        harness.runner(engine=FailingEngine(harness.store, ValueError("too much"))).run([uri])
    with pytest.raises(DiedError):
        harness.runner(engine=FailingEngine(harness.store, ValueError("too much")), on_crash_point=die).run([uri])
    assert "expected the job to finish it first" in whys(redrive(harness, "manifests", "m1"))[0]
    harness.run_once()
    redrive(harness, "manifests", "m1")
    harness.run_once()
    harness.check_exact()


def test_an_id_without_room(harness: Harness) -> None:
    """An id without room for the number of a redrive is refused."""
    long_id = "m" * 200 + "-r123456789-dup-0123456789ab"
    harness.put_manifest("long.json", harness.manifest(long_id, [harness.file("a", GOOD)]).to_json())
    exhaust(harness)
    assert "its id leaves no room for -r1" in whys(redrive(harness, "manifests"))[0]


def test_a_closed_file_stays_for_later(harness: Harness) -> None:
    """A file that is still forbidden is refused, and the other files of its manifest are redriven."""
    harness.deliver("m1", GOOD, FLAWED, GOOD.replace(b'"1"', b'"9"'))
    denied = [f"/w/raw/m1-{number}.ndjson" for number in (1, 2)]
    store = FaultyStore(harness.store)
    for uri in denied:
        store.deny(uri)
    harness.run_once(store=store)
    assert [file.status for file in harness.commit("m1").files[1:]] == [FileStatus.FORBIDDEN] * 2
    still = FaultyStore(harness.store)
    still.deny(denied[0])
    app = harness.app(store=still)
    report = operating.redriver(app).redrive(find_redrivable(app.state, Scope("files")))
    assert [(each.counts, each.files) for each in report.redriven] == [({"forbidden": 1}, 1)]
    assert [each.uri for each in report.refused] == denied[:1]
    assert new_ids(redrive(harness, "files")) == ["m1-r2"]
    harness.run_once()
    harness.check_exact()


def test_only_its_own_redriven_lines(harness: Harness) -> None:
    """A manifest that names lines which were redriven for another lineage is refused."""
    rejected(harness)
    redrive(harness, "rejects")
    [first, *_] = [info.uri for info in harness.store.list("/w/state/redriven/")]
    harness.put_manifest("thief-r1.json", harness.manifest("thief-r1", [ManifestFile(uri=first)]).to_json())
    harness.run_once()
    assert harness.dead_letter("thief-r1").reason == "outside_allowed_prefixes"
    check(harness, "rejects")


@pytest.mark.parametrize(("date", "other_date"), [(DAY, "2025-12-20"), ("2025-12-20", DAY)])
def test_a_file_of_another_date_without_claims(harness: Harness, date: str, other_date: str) -> None:
    """Without claims a file is refused that a manifest of the date in its name, or of its arrival, has compacted."""
    file = harness.file("2025-12-20-a.ndjson", GOOD)
    manifest = harness.manifest("m1", [file, harness.file(f"{date}-b.ndjson", FLAWED)])
    harness.put_manifest("m1.json", manifest.model_copy(update={"date": date}).to_json())
    exhaust(harness)
    other = harness.manifest("m2", [file]).model_copy(update={"date": other_date})
    harness.put_manifest("m2.json", other.to_json())
    harness.run_once()
    report = redrive(harness, "manifests", with_claims=False)
    assert ([each.files for each in report.redriven], whys(report)) == ([1], ["manifest m2 has compacted it"])
    harness.run_once()
    harness.check_exact()


class OvertakenClaims(MemoryClaims):
    """A table in which another planner claims a file right before a redrive does."""

    def claim(self, keys: Sequence[str], holder: str, **lease: Any) -> Mapping[str, Claim]:
        super().claim(keys, "other", **lease)
        return super().claim(keys, holder, **lease)


def test_a_file_that_is_claimed_meanwhile(harness: Harness) -> None:
    """A file that another planner claims during the redrive is refused by name."""
    harness.file("a", GOOD)
    harness.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a"]}]}')
    exhaust(harness)
    harness.claims = OvertakenClaims()
    report = redrive(harness, "manifests")
    assert (report.redriven, report.refused) == (
        (),
        (Refused("m1", "/w/raw/a", "manifest other has claimed it"),),
    )


@NATIVE.needed
@pytest.mark.parametrize("changed", [False, True], ids=["as it is", "with other bytes"])
def test_a_redrive_that_a_job_with_older_settings_refuses(tmp_path: Path, changed: bool) -> None:
    """It takes effect once, however the letters of both are redriven, and before the job has the new settings, too."""
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
    source = tmp_path / "in" / "b" / "x.ndjson"
    source.write_text('{"id": 1}\n{"id": 2}\n')

    def app(*names: str) -> App:
        prefixes = [str(tmp_path / "in" / name) for name in names]
        return App(load_settings(write_settings(tmp_path, input={"allowed_prefixes": prefixes}), {}))

    def redrive_all() -> None:
        for kind in KINDS:
            now = app("a", "b")
            operating.redriver(now).redrive(find_redrivable(now.state, Scope(kind)))

    waiting = Path(app("a").state.layout.manifests_folder)
    waiting.mkdir(parents=True, exist_ok=True)
    document = {"version": 1, "manifest_id": "m1", "date": DAY, "files": [{"uri": str(source)}]}
    (waiting / "m1.json").write_text(json.dumps(document))
    streaming.threaded_job(app("a"), 1).run(once=True)
    redrive_all()
    if changed:
        [path] = waiting.glob("m1-r1.json")
        path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    streaming.threaded_job(app("a"), 1).run(once=True)
    for _ in range(3):
        redrive_all()
        streaming.threaded_job(app("a", "b"), 1).run(once=True)
    rows = [row for path in Path(app("a").state.layout.output).rglob("*.parquet") for row in rows_in(path)]
    assert sorted(rows) == ["1", "2"]
    assert operating.verifier(app("a", "b"), deep=True).verify_all().discrepancies == []


def rows_in(path: Path) -> list[str]:
    """The ids of a file."""
    return [str(each) for each in pq.ParquetFile(path).read()["id"].to_pylist()]
