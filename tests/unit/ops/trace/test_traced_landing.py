"""`trace` of a record of a stream: the landed object that has it."""

from compactor.ops.trace.landed import landed_record
from tests.unit.manifests.test_kinesis_planning import Scene, scene


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
    assert found.stream_id.endswith("000100.000000")
