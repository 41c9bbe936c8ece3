"""The log of redrives: one record a number, ids that lead back to their root, and no number twice."""

from compactor.core.documents.records import Accepted, Redrive
from compactor.core.layout import ManifestKey
from compactor.ledger.history.redrive_log import RedriveLog
from tests.support.harness import DAY, Harness

M1 = ManifestKey(DAY, "m1")


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
    return RedriveLog(state=harness.app().state)


def accept(harness: Harness, manifest_id: str, kind: str = "manifest") -> None:
    harness.ledger.accept(
        Accepted.model_validate(
            {"manifest_id": manifest_id, "kind": kind, "date": DAY, "accepted_at": harness.clock.now()}
        )
    )


def test_one_record_a_number(harness: Harness) -> None:
    """Of two redrives with one number the first counts; its record never changes."""
    first = redrive(harness, 1)
    assert redrive_log(harness).record(M1, first)
    assert not redrive_log(harness).record(M1, first.model_copy(update={"run_id": "another"}))
    assert [entry.redrive for entry in redrive_log(harness).entries(M1)] == [first]


def test_fates(harness: Harness) -> None:
    """A redrive is unwritten, waiting, accepted or revoked; only a revoked one has no effect."""
    for number in (1, 2, 3, 4):
        redrive_log(harness).record(M1, redrive(harness, number))
    redrive_log(harness).deliver(redrive(harness, 2))
    accept(harness, "m1-r3")
    accept(harness, "m1-r4", "revoked")
    entries = redrive_log(harness).entries(M1)
    assert [entry.fate for entry in entries] == ["unwritten", "waiting", "accepted", "revoked"]
    assert [entry.in_effect for entry in entries] == [True, True, True, False]


def test_next_number(harness: Harness) -> None:
    """The next number comes after the newest, and its id was never used, nor revoked."""
    assert redrive_log(harness).next_number(M1, []) == 1
    accept(harness, "m1-r1", "revoked")
    accept(harness, "m1-r2")
    assert redrive_log(harness).next_number(M1, []) == 3
    redrive_log(harness).record(M1, redrive(harness, 3))
    assert redrive_log(harness).next_number(M1, redrive_log(harness).entries(M1)) == 4


def test_next_number_after_a_faster_redrive(harness: Harness) -> None:
    """A redrive that read the log before a faster one was accepted gets no number: it must read again."""
    stale = redrive_log(harness).entries(M1)
    redrive_log(harness).record(M1, redrive(harness, 1))
    accept(harness, "m1-r1")
    assert redrive_log(harness).next_number(M1, stale) is None


def test_lineages(harness: Harness) -> None:
    """A redriven id leads to its root; an id with records that only looks like one is its own root."""
    redrive_log(harness).record(M1, redrive(harness, 1))
    accept(harness, "m1-r7")
    accept(harness, "m2-r1")
    assert {name: redrive_log(harness).root_of(name) for name in ("m1", "m1-r1", "m1-r7", "m2-r1", "m1-r2", "m3")} == {
        "m1": M1,
        "m1-r1": M1,
        "m1-r7": ManifestKey(DAY, "m1-r7"),
        "m2-r1": ManifestKey(DAY, "m2-r1"),
        "m1-r2": None,
        "m3": None,
    }


def test_records_of_redrives_are_no_attempts(harness: Harness) -> None:
    """A redrive does not change the state of its source in the ledger."""
    before = harness.ledger.state(M1)
    redrive_log(harness).record(M1, redrive(harness, 1))
    assert harness.ledger.state(M1) == before
    assert list(harness.ledger.manifests()) == [(DAY, "m1")]
