"""Which manifest is worked on next: lanes, shares and fairness."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.records import Accepted
from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import NO_SHARE, Share
from compactor.job.lanes import FRESH_BEFORE_AGAIN, OTHERS_FIRST, WorkQueue
from compactor.job.results import Delivery

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def work(manifest_id: str, lane: Lane = Lane.FRESH, *, uri: str = "", share: Share = NO_SHARE) -> Delivery:
    accepted = Accepted(manifest_id=manifest_id, kind="manifest", date="2026-01-02", accepted_at=NOW)
    return Delivery(uri or f"/m/{manifest_id}.json", "", accepted, lane=lane, share=share)


def works(letter: str, number: int, lane: Lane = Lane.FRESH) -> list[Delivery]:
    return [work(f"{letter}{each:02}", lane) for each in range(number)]


def queue(slots: int, *waiting: Delivery) -> WorkQueue:
    made = WorkQueue(slots)
    for each in waiting:
        made.add(each)
    return made


def begun(made: WorkQueue) -> list[str]:
    """Begin as many as may begin now."""
    names = []
    while (each := made.next()) is not None:
        names.append(each.manifest_id)
    return names


def test_first_attempts_in_order_up_to_the_slots() -> None:
    """First attempts begin in the order in which they came."""
    assert begun(queue(2, work("a"), work("b"), work("c"))) == ["a", "b"]


def test_repeated_attempts_leave_room_for_first_ones() -> None:
    """They get at most half of the slots while first attempts wait, and all of them while none does."""
    made = queue(4, *works("r", 6, Lane.AGAIN), *works("f", 3 * FRESH_BEFORE_AGAIN))
    for _ in range(2 * FRESH_BEFORE_AGAIN):
        begun(made)
        made.done(next(each for each in made.in_flight.values() if each.lane is Lane.FRESH))
    assert sum(each.lane is Lane.AGAIN for each in made.in_flight.values()) == 2
    assert begun(queue(4, *works("r", 6, Lane.AGAIN))) == ["r00", "r01", "r02", "r03"]


def in_order(made: WorkQueue) -> list[str]:
    """Delivery on one after the other until nothing waits."""
    order = []
    while (each := made.next()) is not None:
        order.append(each.manifest_id)
        made.done(each)
    return order


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_what_failed_before_waits_for_first_attempts(slots: int) -> None:
    """While first attempts wait, one in nine failed before; then all of them did."""
    order = in_order(queue(slots, *works("r", 5, Lane.AGAIN), *works("f", 2 * FRESH_BEFORE_AGAIN + 1)))
    assert "".join(name[0] for name in order).split("r") == ["", "f" * 8, "f" * 8, "f", "", ""]


def test_very_many_that_failed_take_every_second_turn() -> None:
    """Else they would grow without end: they met trouble that first attempts meet, too."""
    many = 3 * OTHERS_FIRST
    order = in_order(queue(1, *works("r", many, Lane.AGAIN), *works("f", 2 * FRESH_BEFORE_AGAIN)))
    fast = many - OTHERS_FIRST  # then few are left, of which each waits as any does
    slowly = "f" * FRESH_BEFORE_AGAIN + "r" + "f" * (FRESH_BEFORE_AGAIN + 1 - fast) + "r" * (OTHERS_FIRST - 1)
    assert "".join(name[0] for name in order) == "rf" * (fast - 1) + "r" + slowly


def test_what_is_undecided_runs_alone_until_another_gets_through() -> None:
    """Nothing begins beside it. Once another manifest was committed, that one tells, and nothing has to wait."""
    made = queue(4, *works("u", 4, Lane.UNDECIDED))
    assert begun(made) == ["u00"]
    assert made.in_flight["u00"].alone
    made.add(work("f"))
    made.note_commit()
    assert begun(made) == []
    made.done(made.in_flight["u00"])
    assert begun(made) == ["u01", "f", "u02", "u03"]


def test_after_a_death_one_more_begins_with_each_that_ended() -> None:
    """A process that follows a death begins with one manifest, alone, and trusts as many as got through.

    What was in flight at the death waits until as many others as for one that is to run alone have begun.
    """
    made = queue(3, *works("r", 2, Lane.AGAIN), *works("f", 20))
    made.be_cautious()
    assert begun(made) == ["f00"]
    assert made.in_flight["f00"].alone
    made.done(made.in_flight["f00"])
    assert begun(made) == ["f01", "f02"]
    made.done(made.in_flight["f01"])
    assert begun(made) == ["f03", "f04"]
    made.done(made.in_flight["f03"])
    assert begun(made) == ["f05"]  # as always again
    for each in list(made.in_flight.values()):
        made.done(each)
    assert in_order(made).index("r00") == 3 * OTHERS_FIRST - 6


def test_shares_take_turns() -> None:
    """A flood of small manifests, or of one source, leaves the others every second turn."""
    tiny = [work(f"t{number}", share=Share(1, "a/")) for number in range(500)]
    same = [work(f"s{number}", share=Share(5, "a/")) for number in range(500)]
    honest = [work(f"h{number}", share=Share(5, "b/")) for number in range(3)]
    made = queue(1, *tiny, *same, *honest)
    order = []
    for _ in range(12):
        order += begun(made)
        made.done(made.in_flight[order[-1]])
    assert order == ["t0", "s0", "t1", "h0", "t2", "s1", "t3", "h1", "t4", "s2", "t5", "h2"]


def test_what_runs_alone_does_not_hold_up_the_others() -> None:
    """Before a manifest that runs alone, several others begin for each slot; then it waits for those in flight."""
    made = queue(1, work("i1", Lane.ALONE), work("i2", Lane.ALONE), *works("f", 9))
    order = []
    for _ in range(11):
        order += begun(made)
        made.done(made.in_flight[order[-1]])
    assert [order.index("i1"), order.index("i2")] == [OTHERS_FIRST, 2 * OTHERS_FIRST + 1]
    made = queue(2, work("i", Lane.ALONE), *works("f", 9))
    for _ in range(2 * OTHERS_FIRST - 1):
        made.done(made.in_flight[begun(made)[-1]])
    assert begun(made) == []  # it is due, and waits until the other one has ended
    made.done(next(iter(made.in_flight.values())))
    assert begun(made) == ["i"]


def test_very_many_wait() -> None:
    """To add a manifest and to take the next one cost the same however many wait, whatever their lanes."""
    lanes = list(Lane)
    made = queue(1, *[work(f"m{number}", lanes[number % len(lanes)]) for number in range(20_000)])
    assert (len(made), made.first_attempts) == (20_000, -(-20_000 // len(lanes)))
    assert not made.add(work("m19999"))
    began = time.process_time()
    for _ in range(1_000):
        [manifest_id] = begun(made)
        made.done(made.in_flight[manifest_id])
    assert (time.process_time() - began) / 1_000 < 0.001  # a walk over all takes 20 times as long
    made.drop_waiting()
    assert (len(made), made.files) == (0, 0)
    assert made.add(work("m19999"))


def test_repeated_deliveries() -> None:
    """The same delivery counts once; another object of the same manifest waits until the first one has ended."""
    made = queue(2, work("a"), work("a", uri="/m/again.json"))
    assert not made.add(work("a"))
    [first] = [made.next()]
    assert first is not None
    assert begun(made) == []
    made.done(first)
    assert begun(made) == ["a"]


LANES = st.lists(st.tuples(st.sampled_from(list(Lane)), st.integers(1, 3)), min_size=1, max_size=20)


@given(LANES, st.integers(min_value=1, max_value=5), st.booleans(), st.randoms(use_true_random=False))
def test_every_manifest_gets_its_turn(
    lanes: list[tuple[Lane, int]], slots: int, cautious: bool, chance: object
) -> None:
    """Whatever waits and in whatever order it ends, all is done, and the rules of the lanes hold at every moment."""
    made = queue(slots, *[work(f"m{number}", lane, share=Share(size)) for number, (lane, size) in enumerate(lanes)])
    if cautious:
        made.be_cautious()
    done = 0
    while len(made) or made.in_flight:
        begun(made)
        in_flight = list(made.in_flight.values())
        assert 1 <= len(in_flight) <= (min(slots, done + 1) if cautious else slots)
        assert all(not each.alone for each in in_flight) or len(in_flight) == 1
        assert not any(each.lane is Lane.ALONE and not each.alone for each in in_flight)
        if chance.random() < 0.2:  # type: ignore[attr-defined]
            made.note_commit()
        made.done(chance.choice(list(made.in_flight.values())))  # type: ignore[attr-defined]
        done += 1
    assert (done, made.files) == (len(lanes), 0)


def test_the_spare_slot_is_for_other_sources() -> None:
    """A source that holds all slots leaves one more to others, for first attempts. A single slot has none beside it."""
    bad, good, other = (Share(1, f"/{name}/") for name in ("bad", "good", "other"))
    made = queue(2, work("b1", share=bad), work("b2", share=bad), work("b3", share=bad))
    assert begun(made) == ["b1", "b2"]
    made.add(work("r", Lane.AGAIN, share=good))
    assert made.next_spare() is None
    made.add(work("g1", share=good))
    made.add(work("g2", share=good))
    made.add(work("o", share=other))
    first = made.next_spare()
    assert first is not None
    assert first.manifest_id == "g1"
    made.done(first)
    second = made.next_spare()
    assert second is not None
    assert second.manifest_id in {"g2", "o"}
    single = queue(1, work("b1", share=bad), work("g", share=good))
    assert begun(single) == ["b1"]
    assert single.next_spare() is None
