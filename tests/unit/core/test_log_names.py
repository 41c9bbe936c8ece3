"""Names of topics and streams, of their records and of gaps."""

import pytest

from compactor.core.logs.names import (
    KAFKA,
    KINESIS,
    LogGap,
    LogName,
    RecordPlace,
    input_place,
    is_gap,
    is_log,
    record_or_gap,
)

TOPIC, STREAM = LogName(KAFKA, "main", "a.b_C-1"), LogName(KINESIS, "main", "Orders_1.x-y")
SHARD = f"{STREAM}/shardId-000000000003"


def test_a_log_has_one_spelling() -> None:
    """A slash at its end aside."""
    for log in (TOPIC, STREAM):
        assert LogName.parse(str(log)) == LogName.parse(f"{log}/") == log
    assert [str(TOPIC), STREAM.path] == ["kafka://main/a.b_C-1", "main/Orders_1.x-y"]


@pytest.mark.parametrize(
    "text",
    [
        *("kinesis://", "kinesis://main", "kinesis://Main/orders", "kinesis://main/a b", "kinesis://main/..", "main/a"),
        *("kafka://main", "kafka://main/a/b", f"kafka://main/{'t' * 250}", "s3://main/a", ""),
    ],
)
def test_no_logs(text: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match=r"(kafka|kinesis)://(cluster/topic|source/stream)"):
        LogName.parse(text)


def test_records() -> None:
    """Positions of Kafka are one behind the offset; sequence numbers are longer than any integer of JSON."""
    number = 49590338271490256608559692538361571095921575989136588898
    found = record_or_gap(f"{SHARD}?sequence={number}")
    assert found == RecordPlace(STREAM, "shardId-000000000003", number)
    assert found.words == f"sequence number {number}"
    found = record_or_gap(f"{TOPIC}/3?offset=17")
    assert (found, found.words) == (RecordPlace(TOPIC, "3", 18), "offset 17")


GAPS = [
    (f"{TOPIC}/3?from=0&to=9223372036854775807", "offsets 0 to 9223372036854775806", 2**63 - 1),
    (f"{TOPIC}/3?from=10&to=25", "offsets 10 to 24", 15),
    (f"{SHARD}?after=0", "from the beginning, to its end, or its next record", 0),
    (f"{SHARD}?after=7", "after sequence number 7, to its end, or its next record", 0),
    (f"{SHARD}?after=7&before=21", "after sequence number 7, before 21", 0),
]


@pytest.mark.parametrize(("uri", "words", "offsets"), GAPS)
def test_a_gap_has_one_spelling(uri: str, words: str, offsets: int) -> None:
    """What it is written as is what is read."""
    gap = record_or_gap(uri)
    assert isinstance(gap, LogGap)
    assert (str(gap), gap.words, gap.offsets) == (uri, words, offsets)


@pytest.mark.parametrize(
    "uri",
    [
        "kafka://main/t/0?from=5&to=5",
        "kafka://main/t/0?from=6&to=5",
        "kafka://main/t/0?from=00&to=5",
        "kafka://main/t/0?from=-1&to=5",
        "kafka://main/t/0?to=5&from=0",
        "kafka://main/t/0?from=0&to=9223372036854775808",
        "kafka://main/t/2147483648?from=0&to=5",
        "kafka://main/t/00?from=0&to=5",
        "kafka://main/t?from=0&to=5",
        "kafka://main/../0?from=0&to=5",
        "kafka://main/t/x/0?from=0&to=5",
        "kafka://main/t%2f/0?from=0&to=5",
        "kafka://Main/t/0?from=0&to=5",
        "kafka://main/t/0?from=0&to=5\n",
        "kafka://main/t/\u0663?from=0&to=5",
        "kafka://main/t/0?offset=x",
        *(
            f"{SHARD}{end}"
            for end in ("", "?after=", "?after=07", "?after=7&before=7", "?after=7&before=0", "?before=7")
        ),
        *(f"{SHARD}{end}" for end in ("?sequence=", "?sequence=007", "?sequence=1&x=2", "?offset=1")),
        "s3://main/t/0?from=0&to=5",
        "",
    ],
)
def test_what_is_neither_a_record_nor_a_gap(uri: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match=r"kafka://cluster/topic|kinesis://source/stream/shard\?sequence=N"):
        record_or_gap(uri)
    assert not is_gap(uri)


def test_places_of_input() -> None:
    """A source, or a log of it; either is no folder."""
    for place in ("kinesis://main", "kinesis://main/orders", "kafka://main", "kafka://main/t"):
        assert input_place(place) == input_place(f"{place}/") == place
    for wrong in (
        "kinesis://main/orders/shardId-1",
        "kafka://",
        "kafka://main/t/0",
        "kafka://main//",
        "kafka://main/..",
    ):
        with pytest.raises(ValueError, match=r"kinesis://source or|kafka://cluster"):
            input_place(wrong)
    assert [is_log(each) for each in ("kinesis://a", "kafka://a", "s3://a", "/a")] == [True, True, False, False]
