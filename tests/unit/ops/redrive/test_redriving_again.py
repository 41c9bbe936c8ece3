"""Redriving what was redriven, what is still wrong, and what is not to be redriven."""

from collections import Counter
from dataclasses import replace

import pytest

from compactor.adapters.memory.store import MemoryClaims
from compactor.core.crash_points import Step
from compactor.core.manifest import ManifestFile
from compactor.core.records import Accepted, FileStatus
from compactor.manifests.claiming import claim_key
from compactor.ops.redrive.selection import Kind, Scope
from tests.support import fakes as twins
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, World
from tests.support.redriving import (
    CASES,
    LEASE_SECONDS,
    FailingEngine,
    check,
    dead_letter,
    exhaust,
    new_ids,
    new_world,
    plan,
    redrive,
    rejected,
    set_aside,
    whys,
)


@pytest.fixture
def world() -> World:
    return new_world()


def test_dead_letter_again(world: World) -> None:
    """A redriven manifest that is a dead letter again is redriven under the next number of the same root."""
    source = dead_letter(world)
    for number in (1, 2, 3):
        assert new_ids(redrive(world, "manifests")) == [f"{source}-r{number}"]
        if number < 3:
            exhaust(world)
    world.run_once()
    world.check_exact()
    names = world.ledger.record_names(DAY, source)
    assert {name for name in names if name.startswith("redrive-")} == {f"redrive-{number}.json" for number in (1, 2, 3)}


def test_redriven_rejects_become_a_dead_letter(world: World) -> None:
    """Redriven lines whose manifest is a dead letter are put back with it: their files serve the whole family."""
    source = rejected(world)
    redrive(world, "rejects")
    exhaust(world)
    assert new_ids(redrive(world, "manifests")) == [f"{source}-r2"]
    world.run_once()
    check(world, "rejects")


def test_rejects_that_are_rejected_again(world: World) -> None:
    """Lines that are rejected again keep their bytes, and can be redriven again; the trail leads back to the source."""
    world.deliver("m1", FLAWED, b"\xef\xbb\xbf{}\nno json either\n\xff\n")
    world.run_once()
    lines = Counter(raw for _, _, raw in world.rejects())
    trail = world.app().trail
    for number in (1, 2):
        report = redrive(world, "rejects")
        assert new_ids(report) == [f"m1-r{number}"]
        world.run_once()
        again = Counter(raw for uri, _, raw in world.rejects() if f"/redriven/m1-r{number}/" in uri)
        assert again == lines
    family = trail.family_of("m1-r2")
    assert family is not None
    first, second = [entry.redrive for entry in trail.entries(family)]
    assert [each.source_uri for each in first.inputs] == ["/w/raw/m1-0.ndjson", "/w/raw/m1-1.ndjson"]
    assert [each.source_uri for each in second.inputs] == [each.uri for each in first.inputs]
    assert (first.source, second.source) == ("m1", "m1-r1")
    assert world.audit().discrepancies == []


def test_rejects_by_reason(world: World) -> None:
    """Each reason of a manifest is redriven once; what is left is another redrive."""
    world.deliver("m1", FLAWED, b"5\n")
    world.run_once()
    first = redrive(world, "rejects", reason="invalid_json")
    assert [(each.manifest_id, each.counts, each.files) for each in first.redriven] == [
        ("m1-r1", {"invalid_json": 1}, 1)
    ]
    second = redrive(world, "rejects", "m1")
    assert [(each.manifest_id, each.counts, each.files) for each in second.redriven] == [
        ("m1-r2", {"not_an_object": 2}, 2)
    ]
    assert redrive(world, "rejects").redriven == []


@pytest.mark.parametrize(("found", "why"), [("nothing", "no such object"), ("other", "hold 1 lines, expected 2 as")])
def test_rejects_that_do_not_add_up(world: World, found: str, why: str) -> None:
    """Rejects that are not what the commit says are not redriven, and nothing is left of the try."""
    world.deliver("m1", FLAWED)
    world.deliver("m2", b"bad\n")
    world.run_once()
    [rejects], [others] = world.commit("m1").rejects, world.commit("m2").rejects
    if found == "nothing":
        world.store.delete([rejects.final])
    else:
        world.store.copy(others.final, rejects.final)
    report = redrive(world, "rejects")
    assert (new_ids(report), [why in each for each in whys(report)]) == (["m2-r1"], [True])
    assert [info.uri for info in world.store.list("/w/state/redriven/m1-r1/")] == []


def test_still_wrong(world: World) -> None:
    """A dead letter is read again by the settings of today: refused while it is wrong, redriven when it is not."""
    world.store.put("/w/elsewhere/a", GOOD)
    world.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/elsewhere/a"]}]}')
    world.put_manifest("m2.json", b"{")
    world.run_once()
    report = redrive(world, "manifests")
    assert [each.partition(":")[0] for each in whys(report)] == ["outside_allowed_prefixes", "not_json"]
    allowed = world.settings.input.model_copy(update={"allowed_prefixes": ("/w/raw", "/w/elsewhere")})
    world.settings = replace(world.settings, input=allowed)
    report = redrive(world, "manifests")
    assert (new_ids(report), len(report.refused)) == (["m1-r1"], 1)
    world.run_once()
    world.check_exact(["/w/elsewhere/a"])


@pytest.mark.parametrize("with_claims", [True, False])
def test_two_letters_of_the_same_file(world: World, with_claims: bool) -> None:
    """Two dead letters that name the same file: only one of them gets it, and the other one says who has it."""
    world.file("a", GOOD)
    for name in ("m1", "m2"):
        world.put_manifest(f"{name}.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a"]}]}')
    exhaust(world)
    report = redrive(world, "manifests", with_claims=with_claims)
    assert new_ids(report) == ["m1-r1"]
    assert "m1-r1" in whys(report)[0]
    again = redrive(world, "manifests", with_claims=with_claims)
    assert (again.redriven, ["m1-r1" in why for why in whys(again)]) == ([], [True])
    world.run_once()
    again = redrive(world, "manifests", with_claims=with_claims)
    assert (again.redriven, ["m1-r1" in why for why in whys(again)]) == ([], [True])
    world.check_exact()


@pytest.mark.parametrize("with_claims", [True, False])
def test_a_file_that_has_rows(world: World, with_claims: bool) -> None:
    """A file that was compacted by another manifest meanwhile is left out, and the rest is redriven."""
    files = [world.file(name, GOOD) for name in ("a", "b")]
    uris = b'["/w/raw/a", "/w/raw/b"]'
    world.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": %b}]}' % uris)
    exhaust(world)
    if with_claims:
        world.claims.claim([claim_key(files[0])], "m2", now=world.clock.now(), lease_seconds=1)
    world.put_manifest("m2.json", world.manifest("m2", files[:1]).to_json())
    world.run_once()
    report = redrive(world, "manifests", with_claims=with_claims)
    assert [(each.manifest_id, each.files) for each in report.redriven] == [("m1-r1", 1)]
    assert [(each.uri, "manifest m2 " in each.why) for each in report.refused] == [("/w/raw/a", True)]
    world.run_once()
    world.check_exact()
    assert redrive(world, "manifests", with_claims=with_claims).refused == []


def test_a_record_that_cannot_be_read(world: World) -> None:
    """Where a damaged record hides whether another manifest has a file, the file is refused and that record named."""
    world.file("a", GOOD)
    world.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/a"]}]}')
    exhaust(world)
    world.deliver("m2", FLAWED)
    world.run_once()
    place = world.layout.outcome(DAY, "m2")
    kept = world.store.read(place)
    world.store.put(place, b"{")
    report = redrive(world, "manifests")
    assert (report.redriven, [place in why for why in whys(report)]) == ([], [True])
    world.store.put(place, kept)
    redrive(world, "manifests")
    world.run_once()
    world.check_exact()


def test_a_new_version_belongs_to_its_own_event(world: World) -> None:
    """A file that came back as a new version, and was planned as such, is left to that manifest."""
    source = set_aside(world)
    plan(world)
    report = redrive(world, "files")
    assert (report.redriven, [each.uri for each in report.refused]) == ([], [f"/w/raw/{DAY}-1.ndjson"])
    world.run_once()
    assert redrive(world, "files", source).redriven == []
    check(world, "files")


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_file_that_somebody_else_holds(world: World, dry_run: bool) -> None:
    """A file that is claimed for another manifest is left to it, also before that is written, and in a dry run."""
    set_aside(world)
    key = claim_key(world.named(f"/w/raw/{DAY}-1.ndjson"))
    world.claims.claim([key], "other", now=world.clock.now(), lease_seconds=1)
    report = redrive(world, "files", dry_run=dry_run)
    assert (report.redriven, whys(report)) == ([], ["manifest other holds the claim of it"])
    assert world.claims.get_many([key])[key].holder == "other"


def test_still_missing(world: World) -> None:
    """A file that is still missing is refused, and stays for later."""
    source = set_aside(world)
    world.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    report = redrive(world, "files")
    assert (report.redriven, whys(report)) == ([], ["there is no such object; expected it to be there by now"])
    world.file(f"{DAY}-1.ndjson", FLAWED)
    assert new_ids(redrive(world, "files")) == [f"{source}-r1"]
    world.run_once()
    check(world, "files")


def test_a_planner_takes_nothing_that_was_redriven(world: World) -> None:
    """A file of no planner's is claimed with its redrive, so that no later planner takes it as well."""
    world.file(f"{DAY}-a", GOOD)
    world.put_manifest("m1.json", b'{"fileLocations": [{"URIPrefixes": ["/w/raw/%b-a"]}]}' % DAY.encode())
    exhaust(world)
    redrive(world, "manifests")
    for _ in range(2):
        world.clock.advance(LEASE_SECONDS + 1)
        assert plan(world) == 0
        world.run_once()
    world.check_exact()


@pytest.mark.parametrize("kind", ["manifests", "files"])
def test_forgotten_claims(world: World, kind: Kind) -> None:
    """When the claims are forgotten, no planner takes what was redriven, because the ledger knows it."""
    CASES[kind](world)
    redrive(world, kind)
    world.run_once()
    world.clock.advance(91 * 86_400)
    world.claims = MemoryClaims(lifetime_days=90)
    assert plan(world) == 0
    check(world, kind)


def test_void_id(world: World) -> None:
    """A manifest whose id was given up by its planner is never redriven: its files were planned again."""
    file = world.file("a", GOOD)
    world.ledger.accept(Accepted(manifest_id="m1", kind="void", date=DAY, accepted_at=world.clock.now()))
    world.put_manifest("m1.json", world.manifest("m1", [file]).to_json())
    world.run_once()
    report = redrive(world, "manifests")
    assert report.redriven == []
    assert "given up by its planner" in whys(report)[0]
    assert "given up by its planner" in whys(redrive(world, "manifests", "m1"))[0]


@pytest.mark.parametrize("with_claims", [True, False])
def test_id_already_used(world: World, with_claims: bool) -> None:
    """Of a manifest whose id was used already only those files are redriven that the other one has not compacted."""
    files = [world.file(name, GOOD) for name in ("a", "b", "c")]
    world.claims.claim([*map(claim_key, files)], "m1", now=world.clock.now(), lease_seconds=1)
    world.put_manifest("m1.json", world.manifest("m1", files[:2]).to_json())
    world.run_once()
    world.put_manifest("other.json", world.manifest("m1", files[1:]).to_json())
    world.run_once()
    report = redrive(world, "manifests", with_claims=with_claims)
    assert [each.files for each in report.redriven] == [1]
    assert [(each.uri, each.why) for each in report.refused] == [("/w/raw/b", "manifest m1 has compacted it")]
    world.run_once()
    world.check_exact()


def test_the_same_manifest_in_the_right_place(world: World) -> None:
    """A manifest that was delivered to the wrong folder, and to the right one as well, is not compacted twice."""
    file = world.file("a", GOOD)
    data = world.manifest("m1", [file]).to_json()
    world.put_manifest("sub/m1.json", data)
    world.run_once()
    world.put_manifest("m1.json", data)
    assert "manifest m1 waits" in whys(redrive(world, "manifests"))[0]
    world.run_once()
    assert "manifest m1 has compacted it" in whys(redrive(world, "manifests"))[0]
    world.check_exact()


def test_scope(world: World) -> None:
    """Ids, a reason and a date each narrow down what is redriven."""
    for name, content in (("m1", GOOD), ("m2", FLAWED)):
        world.deliver(name, content)
    exhaust(world)
    world.put_manifest("2026-01-05.json", b"{")
    world.run_once()
    assert redrive(world, "manifests", date="2026-01-01").redriven == []
    assert redrive(world, "manifests", reason="too_many_keys").redriven == []
    assert new_ids(redrive(world, "manifests", "m2")) == ["m2-r1"]
    assert whys(redrive(world, "manifests", reason="not_json"))[0].startswith("not_json: ")
    report = redrive(world, "manifests", reason="retries_exhausted", date=DAY)
    assert (new_ids(report), report.refused) == (["m1-r1"], [])
    world.run_once()
    world.check_exact()


def test_what_cannot_be_redriven(world: World) -> None:
    """Every id that was named and has nothing to redrive is told with the reason."""
    world.deliver("good", GOOD)
    world.run_once()
    world.deliver("letter", GOOD)
    exhaust(world)
    cases: list[tuple[Kind, str, str]] = [
        ("manifests", "good", "it is no dead letter"),
        ("files", "good", "no files were set aside"),
        ("rejects", "good", "no lines were rejected"),
        ("files", "letter", "expected `redrive manifests`"),
        ("manifests", "stranger", "nothing is on record about it"),
    ]
    for kind, manifest_id, why in cases:
        report = redrive(world, kind, manifest_id)
        assert (report.redriven, [why in each for each in whys(report)]) == ([], [True])


def test_not_done_yet(world: World) -> None:
    """A dead letter that its driver did not bring to its place yet is left to the job."""

    def die(found: Step, _manifest_id: str) -> None:
        if found == Step.DECIDED:
            raise DiedError

    uri = world.deliver("m1", GOOD)
    world.runner(engine=FailingEngine()).run([uri])
    with pytest.raises(DiedError):
        world.runner(engine=FailingEngine(), on_step=die).run([uri])
    assert "expected the job to finish it first" in whys(redrive(world, "manifests", "m1"))[0]
    world.run_once()
    redrive(world, "manifests", "m1")
    world.run_once()
    world.check_exact()


def test_an_id_that_looks_redriven(world: World) -> None:
    """A manifest whose own id ends in -r1 is the root of a family of its own."""
    world.deliver("m1", GOOD)
    world.deliver("m1-r1", FLAWED)
    exhaust(world)
    assert sorted(map(str, new_ids(redrive(world, "manifests")))) == ["m1-r1-r1", "m1-r2"]
    world.run_once()
    world.check_exact()


def test_an_id_without_room(world: World) -> None:
    """An id that cannot become longer is refused in words."""
    long_id = "m" * 199
    world.put_manifest("long.json", world.manifest(long_id, [world.file("a", GOOD)]).to_json())
    exhaust(world)
    assert "its id leaves no room for -r1" in whys(redrive(world, "manifests"))[0]


def test_a_closed_file_stays_for_later(world: World) -> None:
    """A file that may still not be read is refused, and the other files of its manifest are redriven."""
    world.deliver("m1", GOOD, FLAWED, GOOD.replace(b'"1"', b'"9"'))
    denied = [f"/w/raw/m1-{number}.ndjson" for number in (1, 2)]
    store = twins.FaultyStore(world.store)
    for uri in denied:
        store.deny(uri)
    world.run_once(store=store)
    assert [file.status for file in world.commit("m1").files[1:]] == [FileStatus.FORBIDDEN] * 2
    still = twins.FaultyStore(world.store)
    still.deny(denied[0])
    app = world.app(store=still)
    report = app.redriver().redrive(app.surveyor.survey(Scope("files")))
    assert [(each.counts, each.files) for each in report.redriven] == [({"forbidden": 1}, 1)]
    assert [each.uri for each in report.refused] == denied[:1]
    assert new_ids(redrive(world, "files")) == ["m1-r2"]
    world.run_once()
    world.check_exact()


def test_only_its_own_redriven_lines(world: World) -> None:
    """A manifest that names lines which were redriven for another family is refused."""
    rejected(world)
    redrive(world, "rejects")
    [first, *_] = [info.uri for info in world.store.list("/w/state/redriven/")]
    world.put_manifest("thief-r1.json", world.manifest("thief-r1", [ManifestFile(uri=first)]).to_json())
    world.run_once()
    assert world.dead_letter("thief-r1").reason == "outside_allowed_prefixes"
    check(world, "rejects")
