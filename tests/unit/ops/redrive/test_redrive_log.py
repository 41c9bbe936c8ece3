"""The trail of redrives: one record a number, ids that lead back to their root, and no number that was used."""

import pytest

from compactor.core.manifest_key import ManifestKey
from compactor.core.records import Accepted, Redrive
from compactor.ops.redrive.redrive_log import Lineage, RedriveLog, was_redriven
from tests.support.harness import DAY, GOOD, Harness

M1 = ManifestKey(DAY, "m1")

FAMILY = Lineage(M1)


@pytest.fixture
def harness() -> Harness:
    """A world with a manifest m1 on record."""
    harness = Harness()
    harness.deliver("m1", GOOD)
    harness.run_once()
    return harness


def redrive(harness: Harness, number: int, *, kind: str = "manifests", root: str = "m1") -> Redrive:
    manifest = harness.manifest(f"{root}-r{number}", [harness.named("/w/raw/m1-0.ndjson")])
    return Redrive.model_validate(
        {
            "kind": kind,
            "source": root,
            "number": number,
            "counts": {"retries_exhausted": 1},
            "manifest": manifest,
            "run_id": f"run-{number}",
            "redriven_at": harness.clock.now(),
        }
    )


def redrive_log(harness: Harness) -> RedriveLog:
    return harness.app().redrive_log


def accept(harness: Harness, manifest_id: str, kind: str = "manifest") -> None:
    harness.ledger.accept(
        Accepted.model_validate(
            {"manifest_id": manifest_id, "kind": kind, "date": DAY, "accepted_at": harness.clock.now()}
        )
    )


def test_one_record_a_number(harness: Harness) -> None:
    """Of two redrives with one number the first one counts; its record is never changed."""
    first = redrive(harness, 1)
    assert redrive_log(harness).record(FAMILY, first)
    assert not redrive_log(harness).record(FAMILY, first.model_copy(update={"run_id": "another"}))
    assert [entry.redrive for entry in redrive_log(harness).entries(FAMILY)] == [first]


def test_fates(harness: Harness) -> None:
    """A redrive is unwritten, waits, is accepted, or void; only a void one is out of effect."""
    for number in (1, 2, 3, 4):
        redrive_log(harness).record(FAMILY, redrive(harness, number))
    redrive_log(harness).deliver(redrive(harness, 2))
    accept(harness, "m1-r3")
    accept(harness, "m1-r4", "revoked")
    entries = redrive_log(harness).entries(FAMILY)
    assert [entry.fate for entry in entries] == ["unwritten", "waiting", "accepted", "revoked"]
    assert [entry.in_effect for entry in entries] == [True, True, True, False]
    assert was_redriven("m1", entries)
    assert not was_redriven("m1", entries[3:])
    assert not was_redriven("m1-r1", entries)


def test_next_number(harness: Harness) -> None:
    """The next number is behind the newest, and its id is used by nothing, not even by a void one."""
    assert redrive_log(harness).next_number(FAMILY, []) == 1
    accept(harness, "m1-r1", "revoked")
    accept(harness, "m1-r2")
    assert redrive_log(harness).next_number(FAMILY, []) == 3
    redrive_log(harness).record(FAMILY, redrive(harness, 3))
    assert redrive_log(harness).next_number(FAMILY, redrive_log(harness).entries(FAMILY)) == 4


def test_next_number_after_somebody_got_ahead(harness: Harness) -> None:
    """Whoever has not seen a redrive that was accepted meanwhile is told to look again, and gets no further number."""
    stale = redrive_log(harness).entries(FAMILY)
    redrive_log(harness).record(FAMILY, redrive(harness, 1))
    accept(harness, "m1-r1")
    assert redrive_log(harness).next_number(FAMILY, stale) is None


def test_families(harness: Harness) -> None:
    """A redriven id leads to its root; an id that only looks like one, and has records, is a root of its own."""
    redrive_log(harness).record(FAMILY, redrive(harness, 1))
    accept(harness, "m1-r7")
    accept(harness, "m2-r1")
    assert {
        name: redrive_log(harness).lineage_of(name) for name in ("m1", "m1-r1", "m1-r7", "m2-r1", "m1-r2", "m3")
    } == {
        "m1": FAMILY,
        "m1-r1": FAMILY,
        "m1-r7": Lineage(ManifestKey(DAY, "m1-r7")),
        "m2-r1": Lineage(ManifestKey(DAY, "m2-r1")),
        "m1-r2": None,
        "m3": None,
    }


def test_records_of_redrives_are_no_attempts(harness: Harness) -> None:
    """The ledger's state of a manifest is what it was before something was redriven from it."""
    before = harness.ledger.state(M1)
    redrive_log(harness).record(FAMILY, redrive(harness, 1))
    assert harness.ledger.state(M1) == before
    assert list(harness.ledger.manifests()) == [(DAY, "m1")]
