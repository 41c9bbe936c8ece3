"""Which manifest is worked on next: lanes, shares and fairness."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents.records import Accepted
from compactor.core.rules.attempts import Lane
from compactor.core.rules.shares import NO_SHARE, Share
from compactor.job.lanes import FRESH_BEFORE_RETRY, OTHERS_FIRST, WorkQueue
from compactor.job.results import Delivery

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def work(
    manifest_id: str, lane: Lane = Lane.FRESH, *, uri: str = "", deaths: int = 0, share: Share = NO_SHARE
) -> Delivery:
    accepted = Accepted(manifest_id=manifest_id, kind="manifest", date="2026-01-02", accepted_at=NOW)
    deaths = deaths or int(lane is Lane.SUSPECT)
    return Delivery(uri or f"/m/{manifest_id}.json", "", accepted, lane=lane, deaths=deaths, share=share)


def queue(slots: int, *works: Delivery) -> WorkQueue:
    made = WorkQueue(slots)
    for each in works:
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
    """What passing trouble ended gets at most half of the slots while others wait, and all of them while none does."""
    again = [work(f"r{number}", Lane.PASSING) for number in range(6)]
    assert sorted(begun(queue(4, *again, work("a"), work("b"), work("c")))) == ["a", "b", "r0", "r1"]
    assert begun(queue(4, *again)) == ["r0", "r1", "r2", "r3"]


def in_order(made: WorkQueue) -> list[str]:
    """Delivery on one after the other until nothing waits."""
    order = []
    while (each := made.next()) is not None:
        order.append(each.manifest_id)
        made.done(each)
    return order


def test_one_slot_takes_turns() -> None:
    """With a single slot neither first nor repeated attempts starve."""
    made = queue(1, *[work(f"r{n}", Lane.PASSING) for n in range(3)], *[work(f"f{n}") for n in range(3)])
    assert in_order(made) == ["f0", "r0", "f1", "r1", "f2", "r2"]


@pytest.mark.parametrize("slots", [1, 2, 8])
def test_what_keeps_failing_waits_for_first_attempts(slots: int) -> None:
    """While first attempts wait, one in nine is of a manifest that failed for its own reason; then all of them are."""
    again = [work(f"r{number}", Lane.RETRY) for number in range(5)]
    order = in_order(queue(slots, *again, *[work(f"f{number:02}") for number in range(2 * FRESH_BEFORE_RETRY + 1)]))
    between = "".join(name[0] for name in order).split("r")
    assert sorted(between) == ["", "", "", "f", "f" * 8, "f" * 8]


def test_failed_manifests_take_turns() -> None:
    """Neither what passing trouble ended nor what failed for its own reason keeps the other from its next attempt."""
    made = queue(1, *[work(f"r{n}", Lane.RETRY) for n in range(2)], *[work(f"p{n}", Lane.PASSING) for n in range(2)])
    assert in_order(made) == ["p0", "r0", "p1", "r1"]


@pytest.mark.parametrize(("deaths", "together"), [(1, 4), (2, 2), (3, 1), (4, 1), (9, 1)])
def test_fewer_suspects_run_together_with_each_death(deaths: int, together: int) -> None:
    """What was in flight at deaths runs in halves of halves, and at last alone, so that few deaths tell the killer."""
    made = queue(8, *[work(f"s{number}", Lane.SUSPECT, deaths=deaths) for number in range(20)])
    assert len(begun(made)) == together
    assert all(each.alone == (deaths > 3) for each in made.in_flight.values())


def test_the_least_suspicious_first() -> None:
    """Those that were in flight at fewer deaths are cleared before the others."""
    made = queue(4, work("often", Lane.SUSPECT, deaths=2), work("once", Lane.SUSPECT, deaths=1))
    assert begun(made) == ["once"]


def test_a_suspect_alone_leaves_nothing_beside_it() -> None:
    """Nothing begins beside an attempt that is to tell of its manifest alone."""
    made = queue(2, work("s", Lane.SUSPECT, deaths=2))
    assert begun(made) == ["s"]
    made.add(work("f"))
    assert begun(made) == []
    made.done(made.in_flight["s"])
    assert begun(made) == ["f"]


def test_what_is_undecided_runs_alone_until_another_gets_through() -> None:
    """Once another manifest was committed, that one tells, and nothing has to wait."""
    made = queue(4, *[work(f"u{number}", Lane.UNDECIDED) for number in range(4)])
    assert begun(made) == ["u0"]
    assert made.in_flight["u0"].alone
    made.note_commit()
    made.done(made.in_flight["u0"])
    assert begun(made) == ["u1", "u2", "u3"]


def test_after_a_death_one_more_begins_with_each_that_ended() -> None:
    """A process that follows a death begins with the newest manifest, alone, and trusts as many as got through."""
    made = queue(3, *[work(f"f{number}") for number in range(9)])
    made.be_cautious()
    assert begun(made) == ["f8"]
    assert made.in_flight["f8"].alone
    made.done(made.in_flight["f8"])
    assert begun(made) == ["f7", "f6"]
    made.done(made.in_flight["f6"])
    assert begun(made) == ["f5", "f4"]
    made.done(made.in_flight["f5"])
    assert begun(made) == ["f0"]  # as always again


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


def test_others_get_through_before_a_suspect_begins() -> None:
    """A process that dies of a suspect has done as many others before as there are slots."""
    others = [work(f"f{number:02}") for number in range(20)]
    made = queue(2, work("s1", Lane.SUSPECT), work("s2", Lane.SUSPECT), *others)
    order = begun(made)
    while "s1" not in order:
        made.done(made.in_flight[order[-1]])
        order += begun(made)
    assert order == [f"f{number:02}" for number in range(19, 10, -1)] + ["s1"]  # the newest first: it came with killers


def test_isolated_manifests_do_not_hold_up_the_others() -> None:
    """Before an isolated manifest, several others begin for each slot; then it waits for those in flight."""
    made = queue(1, work("i1", Lane.ISOLATED), work("i2", Lane.ISOLATED), *[work(f"f{n}") for n in range(9)])
    order = []
    for _ in range(11):
        order += begun(made)
        made.done(made.in_flight[order[-1]])
    assert [order.index("i1"), order.index("i2")] == [OTHERS_FIRST, 2 * OTHERS_FIRST + 1]
    made = queue(2, work("i", Lane.ISOLATED), *[work(f"f{n}") for n in range(9)])
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


LANES = st.lists(st.tuples(st.sampled_from(list(Lane)), st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=20)


@given(LANES, st.integers(min_value=1, max_value=5), st.booleans(), st.randoms(use_true_random=False))
def test_every_manifest_gets_its_turn(
    lanes: list[tuple[Lane, int, int]], slots: int, cautious: bool, chance: object
) -> None:
    """Whatever waits and in whatever order it ends, all is done, and the rules of the lanes hold at every moment."""
    works = [
        work(f"m{number}", lane, deaths=deaths, share=Share(size)) for number, (lane, deaths, size) in enumerate(lanes)
    ]
    made = queue(slots, *works)
    if cautious:
        made.be_cautious()
    done = 0
    while len(made) or made.in_flight:
        begun(made)
        in_flight = list(made.in_flight.values())
        assert 1 <= len(in_flight) <= (min(slots, done + 1) if cautious else slots)
        suspects = [each.deaths for each in in_flight if each.lane is Lane.SUSPECT]
        assert not suspects or len(suspects) <= slots >> max(suspects)
        assert all(not each.alone for each in in_flight) or len(in_flight) == 1
        assert not any(each.lane in {Lane.ISOLATED, Lane.UNDECIDED} and not each.alone for each in in_flight)
        if chance.random() < 0.2:  # type: ignore[attr-defined]
            made.note_commit()
        made.done(chance.choice(list(made.in_flight.values())))  # type: ignore[attr-defined]
        done += 1
    assert (done, made.files) == (len(lanes), 0)
