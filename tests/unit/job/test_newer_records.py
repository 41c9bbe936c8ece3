"""A job that meets what a newer release wrote leaves it alone and says so; the newer release then goes on with it."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.documents import formats
from compactor.core.documents.formats import FORMATS, Format
from compactor.core.manifest_key import ManifestKey
from compactor.job.run_report import ManifestsUnfinished
from tests.support.harness import DAY, FLAWED, GOOD, DiedError, Harness, dying_at

KEY = ManifestKey(DAY, "a")


def made_newer(harness: Harness, uri: str) -> bytes:
    """Give an object the format after this release's; returns what it was."""
    before = harness.store.read(uri)
    document = {**json.loads(before), "record_format": 3, "record_release": "9.1.0"}
    harness.store.put(uri, json.dumps(document).encode())
    return before


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Become the release that reads the next format of each kind."""
    return lambda: monkeypatch.setattr(formats, "FORMATS", dict.fromkeys(FORMATS, Format(reads=3)))


def died_at(step: CrashPoint) -> Harness:
    """A job that died at a step of its only manifest, which is also waiting."""
    harness = Harness()
    harness.deliver("a", GOOD, FLAWED)
    with pytest.raises(DiedError):
        harness.runner(on_crash_point=dying_at(step)).run([harness.layout.manifest("a")])
    harness.clock.advance(600)
    return harness


RECORDS: dict[str, tuple[CrashPoint, Callable[[Harness], str]]] = {
    "acceptance": (CrashPoint.ACCEPTED, lambda harness: harness.layout.accepted("a")),
    "attempt": (CrashPoint.ATTEMPTED, lambda harness: harness.layout.attempt(KEY, 1)),
    "verified commit": (CrashPoint.VERIFIED, lambda harness: harness.layout.verified_commit("a", 1)),
    "outcome": (CrashPoint.DECIDED, lambda harness: harness.layout.outcome(KEY)),
    "schema version": (CrashPoint.DECIDED, lambda harness: harness.layout.schema(1)),
    "delivered manifest": (CrashPoint.ACCEPTED, lambda harness: harness.layout.manifest("b")),
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_newer_record_waits_for_the_newer_release(record: str, upgrade: Callable[[], None]) -> None:
    """The older job makes it no dead letter, deletes nothing of it, and goes on with others; the newer one ends it."""
    step, place = RECORDS[record]
    harness = died_at(step)
    harness.deliver("b", GOOD)
    made_newer(harness, place(harness))
    kept = {info.uri: info.etag for info in harness.store.list("/w/")}
    harness.deliver("other", FLAWED)
    for _ in range(5):  # more often than a manifest may fail
        with suppress(ManifestsUnfinished):
            assert all("deploy release 9.1.0" in text for text in harness.run_once().stuck.values())
        harness.clock.advance(7200)
    assert [*harness.store.list(harness.layout.failed_folder)] == []
    now = {info.uri: info.etag for info in harness.store.list("/w/")}
    assert now[place(harness)] == kept[place(harness)]
    upgrade()
    harness.run_once()
    harness.check_exact()


def test_its_error_says_which_release_to_deploy() -> None:
    """And where the record is."""
    harness = died_at(CrashPoint.DECIDED)
    made_newer(harness, harness.layout.outcome(KEY))
    assert harness.run_once().stuck == {
        "a": f"{harness.layout.outcome(KEY)}: Outcome has format 3, and this release reads up to format 1; "
        "deploy release 9.1.0 or a later one"
    }


def test_other_writers_do_not_get_this_patience() -> None:
    """A version that no release reads is a dead letter, as before: it would wait for ever."""
    harness = Harness()
    harness.put_manifest("odd.json", b'{"version": 3, "manifest_id": "odd", "record_release": "9.1.0"}')
    assert harness.run_once().dead_lettered == 1
    assert harness.dead_letter("odd").reason == "unknown_version"
