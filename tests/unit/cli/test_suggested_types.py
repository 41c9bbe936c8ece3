"""`schema suggest` and typed rows of generated data, beside Python's own parser of the same text."""

import json
import random
import tomllib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from compactor.cli.entry import compactor as command
from tests.support import extras
from tests.support.compacting import call, write

pytestmark = extras.NATIVE.needed

RECORDS = 400
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Written = Callable[[random.Random], str]


def at(chance: random.Random) -> datetime:
    zone = timezone(timedelta(minutes=chance.randrange(-14 * 60, 14 * 60)))
    return (EPOCH + timedelta(microseconds=chance.randrange(4 * 10**15))).astimezone(zone)


def fraction(digits: int) -> Written:
    """A number with this many digits behind the point."""
    return lambda chance: f"{chance.randrange(-(10**9), 10**9)}.{chance.randrange(10**digits):0{digits}}"


COLUMNS: dict[str, tuple[str, Written]] = {
    "count": ("long", lambda chance: str(chance.choice([0, 1, -1, 2**63 - 1, -(2**63), chance.randrange(10**12)]))),
    "ratio": ("double", lambda chance: repr(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300))),
    "price": ("decimal", fraction(12)),
    "huge": ("decimal", lambda chance: str(chance.randrange(10**20, 10**30))),
    "paid": ("boolean", lambda chance: chance.choice(["true", "false"])),
    "day": ("date", lambda chance: f'"{at(chance).date()}"'),
    "at": ("timestamp", lambda chance: f'"{at(chance).isoformat()}"'),
    "utc": ("timestamp", lambda chance: f'"{at(chance).astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"'),
    "code": ("string", lambda chance: f'"{chance.randrange(1000):03}"'),
    "fine": ("timestamp_ns", lambda chance: f'"{at(chance):%Y-%m-%dT%H:%M:%S}.{chance.randrange(10**9):09}Z"'),
    "local": ("timestamp_ntz", lambda chance: f'"{at(chance):%Y-%m-%d %H:%M:%S}"'),
    "text": ("string", lambda chance: json.dumps("".join(chance.choices('aé"\\\n\t😀 ,{}', k=9)), ensure_ascii=False)),
    "nested": ("string", lambda chance: f'{{"a": [{chance.randrange(9)}.10, null], "b": "{chance.randrange(9)}"}}'),
    "mixed": ("string", lambda chance: chance.choice(["1", '"one"', "[1]", "true"])),
}
"""The type that each column should get, and a value of it as text."""


def record(chance: random.Random) -> dict[str, str]:
    """The text of each value; some are null, and some are not there."""
    return {
        key: "null" if chance.random() < 0.1 else written(chance)
        for key, (_, written) in COLUMNS.items()
        if chance.random() < 0.9
    }


def parsed(kind: str, text: str) -> Any:
    """What Python makes of a value; a string column keeps what is no JSON string as it is written."""
    if text == "null":
        return None
    if kind == "decimal":
        return Decimal(text)
    value = json.loads(text)
    if kind == "date":
        return date.fromisoformat(value)
    if kind == "timestamp_ns":
        second, _, digits = value.removesuffix("Z").partition(".")
        return (datetime.fromisoformat(f"{second}Z") - EPOCH) // timedelta(seconds=1) * 10**9 + int(digits)
    if kind in {"timestamp", "timestamp_ntz"}:
        return datetime.fromisoformat(value)
    return text if kind == "string" and not isinstance(value, str) else value


@pytest.mark.parametrize("seed", [1, 2])
def test_typed_rows_are_what_another_parser_reads(tmp_path: Path, seed: int) -> None:
    """Each column gets its type without a misfit, and every row has the values of its line."""
    chance = random.Random(seed)
    records = [record(chance) for _ in range(RECORDS)]
    (tmp_path / "raw").mkdir()
    text = "".join("{" + ", ".join(f'"{key}": {value}' for key, value in each.items()) + "}\n" for each in records)
    write(tmp_path / "raw" / "a.ndjson", text.encode())
    suggested = CliRunner().invoke(command, ["schema", "suggest", str(tmp_path / "raw"), "--all"])
    types = {each["name"]: each["type"].partition("(")[0] for each in tomllib.loads(suggested.stdout)["columns"]}
    assert types == {key: kind for key, (kind, _) in COLUMNS.items()}
    done = call(tmp_path / "raw", tmp_path / "rows", "--types", "infer", "--deep")
    assert (done.exit_code, "misfits" in done.stdout) == (0, False), done.output
    table = ds.dataset(tmp_path / "rows", format="parquet").to_table().drop_columns(["_rescued_data"])
    fine = table.schema.get_field_index("fine")
    assert table.schema.field(fine).type == pa.timestamp("ns", "UTC")
    rows = table.set_column(fine, "fine", table.column(fine).cast(pa.int64())).to_pylist()
    expected = [{key: parsed(kind, each.get(key, "null")) for key, (kind, _) in COLUMNS.items()} for each in records]
    assert rows == expected
