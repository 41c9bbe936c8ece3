"""The ledger: records are made once, and say how far a manifest has come."""

from datetime import timedelta

import pytest

from compactor.core.documents.changes import Taking, Why
from compactor.core.documents.records import Accepted
from compactor.core.layout import ManifestKey
from compactor.ledger.ledger import RECENT_SLOTS, Ledger
from tests.support.attempt_failures import attempt_failure
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, GOOD, Harness
from tests.support.recent_commits import recent_commit

M1 = ManifestKey(DAY, "m1")


@pytest.fixture
def harness() -> Harness:
    return Harness()


def other(harness: Harness) -> Ledger:
    """The ledger of another driver."""
    return Ledger(harness.store, harness.layout, harness.clock, "another-run")


def test_accept_once(harness: Harness) -> None:
    """An id belongs to the first that asked, for ever."""
    first = Accepted(manifest_id="m1", kind="manifest", date=DAY, digest="1", accepted_at=harness.clock.now())
    second = first.model_copy(update={"kind": "revoked", "digest": "2"})
    assert harness.ledger.accepted("m1") is None
    assert harness.ledger.accept(first) == first
    assert other(harness).accept(second) == first
    assert harness.ledger.accepted("m1") == first


def test_decide_once(harness: Harness) -> None:
    """Commit and dead letter exclude each other: the second driver gets the outcome of the first."""
    uri = harness.deliver("m1", GOOD)
    harness.runner().run([uri])
    commit = harness.commit("m1")
    harness.put_manifest("bad.json", b"")
    harness.run_once()
    letter = harness.dead_letter("bad").model_copy(update={"manifest_id": "m1", "date": commit.date})
    assert other(harness).decide(letter) == commit
    assert harness.ledger.outcome(M1) == commit


def test_a_change_of_what_is_done_is_decided_once(harness: Harness) -> None:
    """Of two processes that decide the same, the first one's words are valid for both; other changes stay beside it."""
    taking = Taking(
        why=Why.REJECTS, about=DAY, id="same", reason="first", by="ann", manifests={"m1": 1},
        run_id="run", decided_at=harness.clock.now(),
    )  # fmt: skip
    assert harness.ledger.decide(taking) == taking
    assert other(harness).decide(taking.model_copy(update={"reason": "second"})) == taking
    for change in ({"id": "another"}, {"about": "2026-01-03"}, {"why": Why.ARCHIVE}):
        different = taking.model_copy(update=change)
        assert other(harness).decide(different) == different


def test_attempts_are_numbered_across_drivers(harness: Harness) -> None:
    """No two attempts share a number, also where a driver does not know of the other's."""
    numbers = [each.begin(M1, after=0, alone=True).number for each in (harness.ledger, other(harness), harness.ledger)]
    assert numbers == [1, 2, 3]
    state = harness.ledger.state(M1)
    assert [each.attempt.number for each in state.attempts.unfolded] == [1, 2, 3]
    assert (state.outcome, state.is_done) == (None, False)


def test_ten_attempts_stay_in_order(harness: Harness) -> None:
    """Attempts are in the order of their numbers, not of their names."""
    ledger = harness.ledger
    for number in range(11):
        attempt = ledger.begin(M1, after=number, alone=False)
        ledger.fail(M1, attempt_failure(attempt, f"e{attempt.number}", harness.clock.now()))
    errors = [each.failure.error for each in ledger.state(M1).attempts.unfolded if each.failure]
    assert errors == [f"e{number}" for number in range(1, 12)]


def test_first_word_about_an_end_holds(harness: Harness) -> None:
    """How an attempt ended is on record once."""
    attempt = harness.ledger.begin(M1, after=0, alone=True)
    harness.ledger.fail(M1, attempt_failure(attempt, "first", harness.clock.now()))
    harness.clock.advance(1)
    harness.ledger.fail(M1, attempt_failure(attempt, "second", harness.clock.now(), passing=False))
    [state] = harness.ledger.state(M1).attempts.unfolded
    assert state.failure is not None
    assert (state.failure.error, state.failure.passing) == ("first", True)


def test_open_markers(harness: Harness) -> None:
    """The index holds what was opened and not closed."""
    for name in ("a", "b", "b"):
        harness.ledger.open(ManifestKey(DAY, name))
    harness.ledger.close("a")
    harness.ledger.close("a")
    assert list(harness.ledger.open_ids()) == ["b"]


def test_manifests_of_a_day(harness: Harness) -> None:
    """Manifests are listed with their days, once each, however many records they have."""
    for day, name in (("2026-01-01", "x"), (DAY, "a"), (DAY, "a"), (DAY, "b")):
        harness.ledger.begin(ManifestKey(day, name), after=0, alone=True)
    assert [*harness.ledger.manifests(DAY)] == [(DAY, "a"), (DAY, "b")]
    assert [*harness.ledger.manifests()] == [("2026-01-01", "x"), (DAY, "a"), (DAY, "b")]


def remember(harness: Harness, ledger: Ledger, count: int) -> None:
    for _ in range(count):
        harness.clock.advance(1)
        ledger.remember(
            recent_commit(harness.clock.now(), manifest_id=f"{harness.clock.now().timestamp():.0f}", date=DAY)
        )


def test_ring_of_recent_commits(harness: Harness) -> None:
    """The ring keeps the latest commits, oldest first, and goes on in its place after a restart."""
    start = harness.clock.now().timestamp()
    remember(harness, harness.ledger, RECENT_SLOTS - 2)
    remember(harness, other(harness), 5)
    recent = harness.ledger.recent()
    expected = [f"{start + number:.0f}" for number in range(4, RECENT_SLOTS + 4)]
    assert [commit.manifest_id for commit in recent] == expected


@pytest.mark.parametrize(("name", "left"), [("000.json", 2), ("readme.txt", 3), ("zzz.json", 3)])
def test_ring_with_foreign_objects(harness: Harness, name: str, left: int) -> None:
    """What cannot be read in the ring, which is a cache, is passed over."""
    remember(harness, harness.ledger, 2)
    harness.clock.advance(1)
    harness.store.put(harness.layout.recent_folder + name, b"{}")
    remember(harness, other(harness), 1)
    assert len(harness.ledger.recent()) == left


def test_no_summary_takes_the_place_of_a_newer_one(harness: Harness) -> None:
    """Although stores date objects to the second, and a rebuild writes the summary of an old commit again."""
    at = harness.clock.now()
    commits = [recent_commit(at + timedelta(milliseconds=number), manifest_id=f"{number}") for number in range(70)]
    for number, commit in enumerate(commits):
        if number == RECENT_SLOTS:
            harness.store.put(harness.layout.recent(7), commits[7].model_dump_json().encode())
        other(harness).remember(commit)
    assert harness.ledger.recent() == commits[-RECENT_SLOTS:]


def test_recent_commits_are_read_once_each(harness: Harness) -> None:
    """A ledger that has read them reads only what another driver has written since, in a slot that was in use, too."""
    remember(harness, other(harness), RECENT_SLOTS)
    store = FaultyStore(harness.store)
    ledger = Ledger(store, harness.layout, harness.clock, "first-run")
    before = ledger.recent()
    assert store.calls["read"] == RECENT_SLOTS
    remember(harness, other(harness), 1)
    after = ledger.recent()
    assert after[:-1] == before[1:]
    assert after == Ledger(harness.store, harness.layout, harness.clock, "second-run").recent()
    assert store.calls["read"] == RECENT_SLOTS + 1
