"""A dead letter whose files later manifests took over is settled, and all commands say so."""

import pytest

from compactor.core.crash_points import RedriveCrashPoint
from compactor.core.documents.records import FileStatus
from compactor.ledger.accounts.account import DeadLetterManifest
from compactor.ledger.accounts.settling import Settling
from compactor.ledger.ledger import RECENT_SLOTS
from compactor.ops.redrive.giving_up import dismissed, find_unsettled
from compactor.sources.packing import new_manifest_id
from compactor.wiring import operating
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed, needing_a_person, unclosed, verified
from tests.support.redriving import LEASE_SECONDS, check, dead_letter, exhaust, new_harness, plan, redrive, whys


@pytest.fixture
def harness() -> Harness:
    return new_harness()


def id_of(uri: str) -> str:
    return uri.rsplit("/", 1)[1].removesuffix(".json")


def take_over(harness: Harness, manifest_id: str = "") -> str:
    """A redrive claims the files and dies, and a plan takes them over; the id of its manifest, which waits."""

    def die(point: RedriveCrashPoint, _manifest_id: str) -> None:
        if point is RedriveCrashPoint.CLAIMED:
            raise DiedError

    with pytest.raises(DiedError):
        redrive(harness, "manifests", *([manifest_id] if manifest_id else []), on_crash_point=die)
    harness.clock.advance(LEASE_SECONDS + 1)
    assert plan(harness)
    [taker] = map(id_of, harness.waiting())
    return taker


def deliver(harness: Harness, manifest_id: str, names: list[str], day: str = DAY) -> None:
    """Compact files by a manifest without claims, an hour later."""
    harness.clock.advance(HOUR_SECONDS)
    files = [harness.named(f"/w/raw/{name}") for name in names]
    manifest = harness.manifest(manifest_id, files).model_copy(update={"date": day})
    harness.put_manifest(f"{manifest_id}.json", manifest.to_json())
    harness.run_once()


def open_letters(harness: Harness) -> set[str]:
    """The dead letters that wait for a person, of which each command says the same."""
    return needing_a_person(harness)[0]


@pytest.mark.parametrize("data", [b"no manifest", b'{"version": 1, "files": 7}'])
def test_a_duplicate_of_a_manifest_of_a_producer_stays_open(harness: Harness, data: bytes) -> None:
    """What cannot be read may have named files of its own, though the manifest that has the id was committed."""
    manifest_id = new_manifest_id(DAY)  # as those of planners look
    harness.store.put("/w/raw/a.ndjson", GOOD)
    deliver(harness, manifest_id, ["a.ndjson"])
    harness.put_manifest(f"{manifest_id}.json", data)
    harness.run_once()
    [letter] = open_letters(harness)
    assert letter.startswith(f"{manifest_id}-dup-")


def test_what_a_plan_took_over_from_a_redrive_that_died(harness: Harness) -> None:
    """It waits for a person until the manifest that took over is committed."""
    letter = dead_letter(harness)
    taker = take_over(harness)
    assert open_letters(harness) == {letter}
    assert "has claimed it" in whys(redrive(harness, "manifests"))[0]
    harness.run_once()
    check(harness, "manifests")
    assert open_letters(harness) == set()
    [found] = harness.verification().dead_letter_manifests
    assert (found.redriven, found.settled_by) == (False, taker)
    assert not harness.verification().needs_operator
    again = redrive(harness, "manifests", letter)
    assert (again.redriven, whys(again)) == (
        (),
        [f"its files were taken over by later manifests, the last one by {taker}"],
    )
    report = operating.verifier(harness.app()).verify_manifests([harness.dead_letter(letter).key])
    assert not report.needs_operator


def test_what_was_taken_over_in_part(harness: Harness) -> None:
    """Each file counts, whatever manifest has it; what is left can be redriven."""
    letter = dead_letter(harness)
    deliver(harness, "p1", [f"{DAY}-1.ndjson"])
    assert open_letters(harness) == {letter}
    harness.file("other.ndjson", GOOD + GOOD)
    deliver(harness, "p2", ["other.ndjson"])
    assert open_letters(harness) == {letter}
    deliver(harness, "p3", [f"{DAY}-0.ndjson"])
    assert open_letters(harness) == set()
    check(harness, "manifests")


def test_a_manifest_that_took_over_and_is_a_dead_letter_itself(harness: Harness) -> None:
    """It settles nothing until it is redriven and compacted, and so along a chain of them."""
    letters = [dead_letter(harness)]
    for _ in range(2):
        letters.append(take_over(harness, letters[-1]))
        exhaust(harness)
        assert open_letters(harness) == set(letters)
    assert len(redrive(harness, "manifests").redriven) == 1
    assert open_letters(harness) == set(letters[:-1])
    harness.run_once()
    assert open_letters(harness) == set()
    check(harness, "manifests")


def test_a_file_that_is_quarantined_where_it_was_taken_over(harness: Harness) -> None:
    """The dead letter waits with it."""
    letter = dead_letter(harness)
    take_over(harness)
    harness.store.delete([f"/w/raw/{DAY}-1.ndjson"])
    harness.run_once()
    assert open_letters(harness) == {letter}
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    redrive(harness, "files")
    harness.run_once()
    assert open_letters(harness) == set()
    check(harness, "manifests")


def test_a_file_that_had_changed_when_it_was_taken_over(harness: Harness) -> None:
    """It needs no rows of that version: the later one may have been compacted before the dead letter was decided."""
    file = harness.file(f"{DAY}-0.ndjson", GOOD)
    plan(harness)
    [letter] = map(id_of, harness.waiting())
    harness.file(f"{DAY}-0.ndjson", GOOD + GOOD)
    uri = harness.put_manifest("q.json", harness.manifest("q", [harness.named(file.uri)]).to_json())
    harness.runner().run([uri])
    harness.clock.advance(1)
    exhaust(harness)
    assert harness.dead_letter(letter)
    harness.clock.advance(HOUR_SECONDS)
    assert open_letters(harness) == {letter}
    harness.put_manifest("p.json", harness.manifest("p", [file]).to_json())
    harness.run_once()
    assert harness.commit("p").files[0].status is FileStatus.CHANGED
    assert open_letters(harness) == set()


def test_earlier_rows_of_another_version_settle_nothing(harness: Harness) -> None:
    """Nor does a dead letter whose manifest cannot be read."""
    harness.file(f"{DAY}-0.ndjson", GOOD)
    harness.file(f"{DAY}-1.ndjson", FLAWED)
    deliver(harness, "p1", [f"{DAY}-0.ndjson", f"{DAY}-1.ndjson"])
    harness.put_manifest("bad.json", b"{")
    harness.run_once()
    harness.store.delete([info.uri for info in harness.store.list("/w/raw/")])
    files = [harness.file(f"{DAY}-{number}.ndjson", b'{"id": "3%d"}\n' % number) for number in range(2)]
    harness.put_manifest("p2.json", harness.manifest("p2", files).to_json())
    exhaust(harness)
    assert open_letters(harness) == {"p2", "bad"}


@pytest.mark.parametrize("days", [(DAY, DAY), ("2026-01-01", "2026-01-05"), ("2026-01-05", "2026-01-01")])
def test_dates_that_are_closed_meanwhile(harness: Harness, days: tuple[str, str]) -> None:
    """The last file may be taken over long after the date of the dead letter and that of the first one were closed."""
    letter = dead_letter(harness)
    for number, day in enumerate(days):
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        assert not closed(harness).discrepancies
        assert open_letters(harness) == {letter}
        deliver(harness, f"p{number}", [f"{DAY}-{number}.ndjson"], day)
    for _ in range(2):
        assert open_letters(harness) == set()
        with unclosed(harness):
            assert open_letters(harness) == set()
        harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
        assert not closed(harness).discrepancies
    assert verified(harness).dead_letter_manifests == []
    [found] = Settling(harness.app().state).letters([DeadLetterManifest(letter, "", "")])
    assert found.settled_by == "p1"


def test_a_dead_letter_that_is_dismissed(harness: Harness) -> None:
    """All commands call it settled, also once its date is closed; a redrive refuses it with who did so, and why."""
    harness.put_manifest("bad.json", b"")
    harness.run_once()
    assert open_letters(harness) == {"bad"}
    state = harness.app().state
    found = find_unsettled(state, manifest_ids=["bad"])
    assert ([each.reason for each in found.dead_letters], found.refused) == (["empty"], ())
    [letter] = dismissed(state, found, "a test", by="ann@host").dead_letters
    assert (letter.ended, letter.fate.startswith("dismissed by ann@host at ")) == ("dismissed", True)
    assert open_letters(harness) == set()
    refused = redrive(harness, "manifests", "bad")
    assert whys(refused) == [letter.fate] == [each.why for each in find_unsettled(state, manifest_ids=["bad"]).refused]
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    assert not closed(harness).discrepancies
    assert open_letters(harness) == set()


@pytest.mark.parametrize("is_claimed", [True, False])
@pytest.mark.parametrize("is_same", [True, False])
def test_a_corrected_dead_letter_whose_files_are_done(harness: Harness, *, is_claimed: bool, is_same: bool) -> None:
    """A redrive settles it if other manifests have rows of all its files, in the versions that it names."""
    file = harness.file("a.ndjson", GOOD)
    if is_claimed:
        plan(harness)
        harness.run_once()
    else:
        deliver(harness, "p", ["a.ndjson"])
    manifest = harness.manifest("hand", [file]).to_json()
    harness.put_manifest("hand.json", manifest.replace(b'"2026', b'"26'))
    harness.run_once()
    assert open_letters(harness) == {"hand"}
    if not is_same:
        manifest = harness.manifest("hand", [harness.file("a.ndjson", FLAWED)]).to_json()
    harness.store.put(harness.app().state.layout.failed_manifest("hand"), manifest)
    tried = redrive(harness, "manifests", dry_run=True)
    assert [each.manifest_id for each in tried.settled] == (["hand"] if is_same else [])
    report = redrive(harness, "manifests")
    assert (len(report.settled), len(report.redriven), report.refused) == (int(is_same), int(not is_same), ())
    assert open_letters(harness) == set()


def test_a_status_long_after(harness: Harness) -> None:
    """It says so however many commits came since."""
    letter = dead_letter(harness)
    take_over(harness)
    harness.run_once()
    for number in range(RECENT_SLOTS):
        harness.deliver(f"later{number}", GOOD)
    harness.run_once()
    assert operating.status_reader(harness.app()).read().dead_letters.open == 0
    assert not operating.tracer(harness.app()).trace_manifest(letter).needs_operator
