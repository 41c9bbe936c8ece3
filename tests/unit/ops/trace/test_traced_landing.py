"""`trace` of a record of a stream: the landed object that has it."""

from compactor.ops.trace.finding import landed_record
from tests.support.kpl import aggregated
from tests.support.memory_kinesis import STREAM
from tests.unit.sources.test_kinesis_planning import Scene, scene


def where(made: Scene, shard: str, sequence: int) -> str:
    found = landed_record(made.planner().state, f"kinesis://main/events/{shard}?sequence={sequence}")
    if found is None:
        return ""
    assert str(sequence) in found.words
    return found.words.split(" is ")[-1]


def test_a_record_is_in_one_object() -> None:
    """The first and the last of it have known lines. What was not landed is found nowhere."""
    made, [shard] = scene()
    made.put(3)
    made.plan()
    made.put(2)
    assert where(made, shard, 7) == "line 1 of this object"
    assert where(made, shard, 14) == "among the 3 lines of this object"
    assert where(made, shard, 21) == "line 3 of this object"
    assert where(made, shard, 28) == ""
    assert where(made, "shardId-000000000009", 7) == ""


def test_records_that_were_lost() -> None:
    """They are told apart from those that never were."""
    made, [shard] = scene()
    made.put(1)
    made.plan()
    made.put(1)
    made.clock.advance(86_401)
    made.put(2)
    made.plan()
    assert where(made, shard, 14).endswith("retention may have removed it before it was landed")
    assert where(made, shard, 28) == "line 2 of this object"
    found = landed_record(made.planner().state, f"{STREAM}/{shard}?after=7&before=21")
    assert found is not None
    assert (found.uri, found.words.partition(": ")[2]) == (made.gaps()[0], "after sequence number 7, before 21")


def test_records_that_were_lost_from_an_idle_shard() -> None:
    """Behind the end of its chain, they are in its gap, as long as no other record came."""
    made, [shard] = scene()
    made.put(1)
    made.plan()
    made.put(1)
    made.clock.advance(2 * 86_401)
    made.plan()
    assert where(made, shard, 14).startswith("in this gap")
    found = landed_record(made.planner().state, f"{STREAM}/{shard}?sequence=14")
    assert found is not None
    assert found.uri == f"{STREAM}/{shard}?after=7"
    assert landed_record(made.planner().state, f"{STREAM}/{shard}?after=1") is None


def test_records_beside_packed_ones_that_were_left_out() -> None:
    """No line is told that may be that of another record."""
    made, [low, high] = scene(2)
    strays = aggregated([("a", b"1"), ("b", b"2")], hashes=[0, 2**128 - 1])
    packed = aggregated([("a", b"3"), ("b", b"4")], hashes=[0, 1])
    made.kinesis.put(strays, packed, shard=low)
    made.kinesis.put(strays, shard=high)
    made.stray_rule = "drop"
    made.planner().land(STREAM, max_manifests=9)
    among = "among the 2 lines of this object, unless it was among 2 packed records of other shards left out"
    assert [where(made, low, 7), where(made, low, 14)] == [among, among]
    left_out = "in no object: there were only 2 packed records of other shards left out"
    assert where(made, high, 21) == left_out


def test_a_stream_made_again() -> None:
    """The one that was planned last counts."""
    made, [shard] = scene()
    made.put(1)
    made.plan()
    made.clock.advance(60)
    made.kinesis.create()
    made.kinesis._sequence = 0
    made.put(1)
    made.plan()
    found = landed_record(made.planner().state, f"kinesis://main/events/{shard}?sequence=7")
    assert found is not None
    assert "000100.000000 is line 1" in found.words
