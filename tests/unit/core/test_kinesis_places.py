"""Names of Kinesis streams and of records."""

import pytest

from compactor.core.inputs.source_places import is_topic_or_stream
from compactor.core.kinesis.places import KinesisStream, SequencePlace, StreamGap, input_place, is_record_or_gap


def test_a_stream_has_one_spelling() -> None:
    """A slash at its end aside."""
    assert KinesisStream.parse("kinesis://main/orders/") == KinesisStream("main", "orders")
    assert str(KinesisStream("main", "Orders_1.x-y")) == "kinesis://main/Orders_1.x-y"


@pytest.mark.parametrize(
    "text",
    ["kinesis://", "kinesis://main", "kinesis://Main/orders", "kinesis://main/a b", "kinesis://main/..", "main/a"],
)
def test_no_streams(text: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match=r"kinesis://source/stream"):
        KinesisStream.parse(text)


def test_a_record_of_a_shard() -> None:
    """Sequence numbers are longer than any integer of JSON."""
    number = 49590338271490256608559692538361571095921575989136588898
    found = SequencePlace.parse(f"kinesis://main/orders/shardId-000000000003?sequence={number}")
    assert found == SequencePlace(KinesisStream("main", "orders"), "shardId-000000000003", number)


@pytest.mark.parametrize("end", ["", "?sequence=", "?sequence=007", "?sequence=1&x=2", "?offset=1"])
def test_no_records(end: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match=r"sequence=N"):
        SequencePlace.parse(f"kinesis://main/orders/shardId-000000000003{end}")


@pytest.mark.parametrize("end", ["after=0", "after=7", "after=0&before=7", "after=7&before=21"])
def test_a_gap_of_a_shard(end: str) -> None:
    """It has one spelling, in which the sequence number behind it may lack."""
    uri = f"kinesis://main/orders/shardId-000000000003?{end}"
    assert str(StreamGap.parse(uri)) == uri
    assert is_record_or_gap(uri)


@pytest.mark.parametrize("end", ["", "?after=", "?after=07", "?after=7&before=7", "?after=7&before=0", "?before=7"])
def test_no_gaps(end: str) -> None:
    """The message says what was expected."""
    uri = f"kinesis://main/orders/shardId-000000000003{end}"
    with pytest.raises(ValueError, match=r"after=N&before=M"):
        StreamGap.parse(uri)
    assert not is_record_or_gap(uri)


def test_places_of_input() -> None:
    """A source, or a stream of it; either is no folder."""
    assert [input_place(each) for each in ("kinesis://main", "kinesis://main/orders/")] == [
        "kinesis://main",
        "kinesis://main/orders",
    ]
    with pytest.raises(ValueError, match=r"kinesis://source or"):
        input_place("kinesis://main/orders/shardId-1")
    assert [is_topic_or_stream(each) for each in ("kinesis://a", "kafka://a", "s3://a", "/a")] == [
        True,
        True,
        False,
        False,
    ]
