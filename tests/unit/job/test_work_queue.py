"""Which manifest is worked on next: lanes, shares and fairness."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from compactor.core.attempts import Lane
from compactor.core.records import Accepted
from compactor.job.intake import Delivery
from compactor.job.work_queue import Work, WorkQueue

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def work(manifest_id: str, lane: Lane = Lane.FRESH, *, uri: str = "") -> Work:
    accepted = Accepted(manifest_id=manifest_id, kind="manifest", date="2026-01-02", accepted_at=NOW)
    return Work(Delivery(uri or f"/m/{manifest_id}.json", "", accepted), lane, 1)


def queue(slots: int, *works: Work) -> WorkQueue:
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
    """Failing manifests get at most half of the slots while others wait, and all of them while none does."""
    again = [work(f"r{number}", Lane.RETRY) for number in range(6)]
    assert sorted(begun(queue(4, *again, work("a"), work("b"), work("c")))) == ["a", "b", "r0", "r1"]
    assert begun(queue(4, *again)) == ["r0", "r1", "r2", "r3"]


def test_one_slot_takes_turns() -> None:
    """With a single slot neither first nor repeated attempts starve."""
    made = queue(1, *[work(f"r{n}", Lane.RETRY) for n in range(3)], *[work(f"f{n}") for n in range(3)])
    order = []
    while (each := made.next()) is not None:
        order.append(each.manifest_id)
        made.done(each)
    assert order == ["f0", "r0", "f1", "r1", "f2", "r2"]


def test_one_suspect_at_a_time() -> None:
    """Two manifests that drivers may have died of are never in flight together."""
    made = queue(4, work("s1", Lane.SUSPECT), work("s2", Lane.SUSPECT))
    assert begun(made) == ["s1"]


def test_others_get_through_before_a_suspect_begins() -> None:
    """A process that dies of a suspect has done as many others before as there are slots."""
    others = [work(f"f{number}") for number in range(3)]
    made = queue(2, work("s1", Lane.SUSPECT), work("s2", Lane.SUSPECT), *others)
    assert begun(made) == ["f0", "f1"]
    made.done(made.in_flight["f0"])
    assert begun(made) == ["f2"]
    made.done(made.in_flight["f1"])
    assert begun(made) == ["s1"]


def test_isolated_manifests_do_not_hold_up_the_others() -> None:
    """Before an isolated manifest, as many others begin as there are slots; then it waits for those in flight."""
    made = queue(2, work("i1", Lane.ISOLATED), work("i2", Lane.ISOLATED), *[work(f"f{n}") for n in range(4)])
    for isolated, others in (("i1", ["f0", "f1"]), ("i2", ["f2", "f3"])):
        assert begun(made) == others
        made.done(made.in_flight[others[0]])
        assert begun(made) == []  # it is due, and waits until the other one has ended
        made.done(made.in_flight[others[1]])
        assert begun(made) == [isolated]
        made.done(made.in_flight[isolated])


def test_very_many_wait() -> None:
    """To add a manifest costs the same however many wait."""
    made = queue(1, *[work(f"m{number}") for number in range(20_000)])
    assert len(made.waiting) == 20_000
    assert not made.add(work("m19999"))
    made.drop_waiting()
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


LANES = st.lists(st.sampled_from(list(Lane)), min_size=1, max_size=20)


@given(LANES, st.integers(min_value=1, max_value=5), st.randoms(use_true_random=False))
def test_every_manifest_gets_its_turn(lanes: list[Lane], slots: int, chance: object) -> None:
    """Whatever waits and in whatever order it ends, all is done, and the rules of the lanes hold at every moment."""
    made = queue(slots, *[work(f"m{number}", lane) for number, lane in enumerate(lanes)])
    done = 0
    while made.waiting or made.in_flight:
        begun(made)
        in_flight = [each.lane for each in made.in_flight.values()]
        assert 1 <= len(in_flight) <= slots
        assert in_flight.count(Lane.SUSPECT) <= 1
        assert Lane.ISOLATED not in in_flight or len(in_flight) == 1
        made.done(chance.choice(list(made.in_flight.values())))  # type: ignore[attr-defined]
        done += 1
    assert done == len(lanes)
