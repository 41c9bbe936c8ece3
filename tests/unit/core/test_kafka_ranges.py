"""Names of topics, ranges and offsets."""

import pytest

from compactor.core.kafka.ranges import KafkaRange, RecordPlace, Topic, input_place, is_range

TOPIC = Topic("main", "a.b_C-1")


def test_a_range_has_one_spelling() -> None:
    """What it is written as is what is read."""
    each = KafkaRange(TOPIC, 3, 0, 2**63 - 1)
    assert str(each) == "kafka://main/a.b_C-1/3?from=0&to=9223372036854775807"
    assert KafkaRange.parse(str(each)) == each
    assert KafkaRange(TOPIC, 3, 10, 25).offsets == 15


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
        "kafka://main/./0?from=0&to=5",
        "kafka://main/t/x/0?from=0&to=5",
        "kafka://main/t%2f/0?from=0&to=5",
        f"kafka://main/{'t' * 250}/0?from=0&to=5",
        "kafka://Main/t/0?from=0&to=5",
        "kafka://main/t/0?from=0&to=5\n",
        "kafka://main/t/٣?from=0&to=5",
        "s3://main/t/0?from=0&to=5",
        "",
    ],
)
def test_what_is_no_range(uri: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ValueError, match="kafka://cluster/topic/partition"):
        KafkaRange.parse(uri)
    assert not is_range(uri)


def test_an_offset() -> None:
    """It names one record, which need not be there."""
    assert RecordPlace.parse("kafka://main/a.b_C-1/3?offset=17") == RecordPlace(TOPIC, 3, 17)
    assert RecordPlace.parse("kafka://main/a.b_C-1/3?offset=x") is None
    assert is_range("kafka://main/a.b_C-1/3?offset=17")


def test_places_of_input() -> None:
    """A whole cluster, or a topic."""
    assert [input_place(each) for each in ("kafka://main", "kafka://main/t/")] == ["kafka://main", "kafka://main/t"]
    for wrong in ("kafka://", "kafka://main/t/0", "kafka://main//", "kafka://main/.."):
        with pytest.raises(ValueError, match="kafka://cluster"):
            input_place(wrong)
    with pytest.raises(ValueError, match="kafka://cluster/topic"):
        Topic.parse("kafka://main")
