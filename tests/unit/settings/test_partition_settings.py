"""Settings of partitions: what is wrong is named with what was expected."""

from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.core.partitions import PartitionField
from compactor.settings.settings import parse_settings

PATHS: dict[str, Any] = {
    "paths": {name: f"/w/{name}" for name in ("manifests", "output", "state")},
    "input": {"allowed_prefixes": ["/w/raw"]},
}
TABLE = {"catalog": "glue", "name": "lake.events"}


def test_fields() -> None:
    """None by default; lists in an environment variable are JSON."""
    assert parse_settings(PATHS).partition_fields == ()
    found = parse_settings(PATHS, {"COMPACTOR_OUTPUT__PARTITION_BY": '["day(t)", "b = bucket(u, 4)"]'})
    assert found.partition_fields == (
        PartitionField("t_day", "day", "t"),
        PartitionField("b", "bucket", "u", buckets=4),
    )


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ({"partition_by": ["month(t)"]}, r"output.partition_by: .*month\(t\).* -> expected day\(KEY\)"),
        ({"partition_by": ["day(t)", "t_day = hour(t)"]}, "a different folder name for each"),
        ({"partition_by": ["file_date = day(t)"]}, "a different folder name for each, none of them"),
        ({"partition_by": [f"f{at} = identity(k{at})" for at in range(5)]}, "at most 4 of them"),
        ({"partition_by": ["Date = day(t)"], "folder": "date={date}"}, "a name other than that of the date folder"),
        ({"partition_by": [5]}, "output.partition_by"),
    ],
)
def test_faults(output: dict[str, Any], fault: str) -> None:
    """Each with the key and the value."""
    with pytest.raises(SettingsError, match=fault):
        parse_settings({**PATHS, "output": output})


def test_a_table_needs_the_types_of_its_partitions() -> None:
    """They come from the schema file."""
    with pytest.raises(SettingsError, match="a schema file that declares its key, because table"):
        parse_settings({**PATHS, "output": {"partition_by": ["day(t)"]}, "table": TABLE})
