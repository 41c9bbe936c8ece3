"""What a record of what expired takes, and what it leaves."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.changes import TAKES, Taking
from compactor.core.layout import ManifestKey
from compactor.ledger.visible import expired_by
from compactor.upkeep.expiring import left_under

DAYS = ("2026-01-02", "2026-01-03")
IDS = ("a", "b", "c")
PARTS = ("rows", "rejects", "archive", "redriven")

manifests = st.dictionaries(st.sampled_from(IDS), st.integers(1, 3))
records = st.builds(
    lambda why, date, number, members: Taking(
        why=why,
        about=date,
        id=str(number),
        reason=f"rule {number}",
        by="ann",
        run_id="run",
        decided_at=datetime(2026, 2, 1, tzinfo=UTC) + timedelta(days=number),
        manifests=members,
    ),
    st.sampled_from([*TAKES]),
    st.sampled_from(DAYS),
    st.integers(0, 9),
    manifests,
)


@given(st.lists(records), st.sampled_from(PARTS), st.sampled_from(DAYS), st.sampled_from(IDS), st.integers(1, 4))
def test_only_what_a_record_names_expired(
    found: list[Taking], part: str, date: str, manifest_id: str, generation: int
) -> None:
    """By its date, its id, its part, and a generation that was there; the first record says why."""
    taking = [
        each
        for each in found
        if each.about == date and part in TAKES[each.why] and generation <= each.manifests.get(manifest_id, 0)
    ]
    why = expired_by(found, part, ManifestKey(date, manifest_id), generation)  # type: ignore[arg-type]
    assert (why is not None) == bool(taking)
    assert why is None or (why in taking and why.decided_at == min(each.decided_at for each in taking))


@given(records, manifests, st.frozensets(st.sampled_from(IDS)))
def test_what_was_rebuilt_or_is_open_is_not_deleted(
    record: Taking, generations: dict[str, int], opened: frozenset[str]
) -> None:
    """A manifest goes now, or has to wait, or was rebuilt since: never two of these."""
    now, later = left_under(record, generations, opened)
    assert not set(now) & set(later)
    assert not set(now) & opened
    assert set(later) <= opened
    same = {each for each, generation in record.manifests.items() if generations.get(each) == generation}
    assert {*now, *later} == same
