"""Which dead letters are asked for, once dates are closed."""

import pytest

from compactor.core.documents.closed_dates import ClosedDate, Member
from compactor.core.documents.counts import Counts
from compactor.ledger.accounts import reading as kept_letters_module
from compactor.ledger.accounts.reading import kept_letters
from compactor.ledger.history.closed_dates import ClosedDates, Versions
from compactor.ledger.history.unsummarised import members_with_rejects, read_unsummarised
from compactor.ndjson import lines
from compactor.ops.rejects import RejectsSearch
from tests.support.fakes import FaultyStore
from tests.support.harness import DAY, FLAWED, GOOD, Harness
from tests.support.histories import HOUR_SECONDS, QUIET_HOURS, closed, rejected, unclosed


@pytest.fixture
def harness() -> Harness:
    """Dates are closed here; since then three manifests were committed, and one is a dead letter."""
    harness = Harness()
    closed(harness)
    for number in range(3):
        harness.put_manifest(
            f"m{number}.json", harness.manifest(f"m{number}", [harness.file(f"{number}.ndjson", GOOD)]).to_json()
        )
    harness.put_manifest("letter.json", b"{}")
    harness.run_once()
    return harness


def stats(harness: Harness) -> int:
    """How many are asked for by name."""
    found = read_unsummarised(harness.app().state)
    store = FaultyStore(harness.store)
    kept = kept_letters(harness.app(store=store).state, found)
    assert (kept.manifests, list(kept.waiting)) == (1, ["letter"])
    assert store.calls["list"] == 0
    return store.calls["stat"]


def test_only_what_may_be_a_dead_letter_is_asked_for(harness: Harness) -> None:
    """The marks of commits tell what they are of."""
    assert stats(harness) == 1


def test_many_are_listed_unless_the_folder_has_too_many(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page of it; and what is not to be found there is asked for by name."""
    monkeypatch.setattr(kept_letters_module, "ASKED_FOR", 0)
    found = read_unsummarised(harness.app().state)
    for page, calls in ((1000, {"list": 1}), (1, {"list": 1, "stat": 1})):
        monkeypatch.setattr(kept_letters_module, "PAGE_OBJECTS", page)
        store = FaultyStore(harness.store)
        kept = kept_letters(harness.app(store=store).state, found)
        assert (kept.manifests, len(kept.waiting)) == (1, 1)
        assert {name: store.calls[name] for name in calls} == calls


def test_rejects_that_are_only_counted_are_found_in_closed_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many to keep even one: the summary tells of them."""
    monkeypatch.setattr(lines, "MAX_REJECTED_BYTES", 1)
    harness = Harness(reading={"on_too_many_rejects": "keep_rows"})
    harness.put_manifest("m.json", harness.manifest("m", [harness.file("a.ndjson", FLAWED)]).to_json())
    harness.run_once()
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)
    found = rejected(harness)
    assert (found[0][2], found[0][3]) == (2, 0)
    with unclosed(harness):
        assert rejected(harness) == found


def test_rejects_cost_nothing_where_there_are_none(harness: Harness) -> None:
    """The totals tell which summaries have no rejects, so their members are not read."""
    harness.clock.advance(QUIET_HOURS * HOUR_SECONDS)
    closed(harness)
    store = FaultyStore(harness.store)
    assert list(RejectsSearch(harness.app(store=store).state).manifests()) == []
    assert store.calls["read_range"] == 0


def test_members_with_rejects_are_found(harness: Harness) -> None:
    """Each tells the rejects that are kept, and those that are only counted."""
    state = harness.app().state
    dates, now = ClosedDates(state.store, state.layout), harness.clock.now()
    summary = ClosedDate(
        date=DAY,
        number=1,
        run_id="r",
        closed_at=now,
        begins_at=now,
        until=now,
        sums=Counts(rejected_lines=2),
        members=0,
        member_bytes=0,
        versions=0,
    )
    dates.write(1, summary, [Member("a", 1, 2, 0), Member("b", 1, 0, 3)], Versions.none())
    assert dates.members(1) == [("a", 1, 2, 0), ("b", 1, 0, 3)]
    totals = dates.totals()
    assert [key.id for key in members_with_rejects(state, totals)] == ["a"]
    assert [key.id for key in members_with_rejects(state, totals, counted=True)] == ["a", "b"]
