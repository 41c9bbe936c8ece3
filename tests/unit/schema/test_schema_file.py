"""The schema file: what it declares, and that all of its faults are reported at once."""

from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.schema.schema import DeclaredColumn, Names
from compactor.schema.schema_of_settings import parse_schema_file

WHERE = "s3://conf/columns.toml"
WHOLE = """
[[columns]]
name = "id"
type = "long"

[[columns]]
name = "user_name"
key = "user.name"
type = "string"

[[columns]]
name = "amount"
type = "decimal(18, 2)"

[[columns]]
name = "at"
key = ""
type = "timestamp"
epoch = "milliseconds"
"""


def parsed(
    text: str | bytes, names: Names = "safe", max_columns: int = 10, *, refused: dict[str, str] | None = None
) -> tuple[DeclaredColumn, ...]:
    data = text if isinstance(text, bytes) else text.encode()
    limits: dict[str, Any] = {"max_columns": max_columns, "refused": refused or {}}
    return parse_schema_file(data, WHERE, names=names, **limits)


def faults(text: str | bytes, names: Names = "safe", max_columns: int = 10) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        parsed(text, names, max_columns)
    assert all(fault.startswith(f"{WHERE}: ") and " -> expected " in fault for fault in caught.value.faults)
    return [fault.removeprefix(f"{WHERE}: ") for fault in caught.value.faults]


def column(**fields: str) -> str:
    return "[[columns]]\n" + "".join(f"{key} = {value}\n" for key, value in fields.items())


def test_a_whole_file() -> None:
    """Columns come in the file's order; the key is the name unless it is given."""
    assert parsed(WHOLE) == (
        DeclaredColumn("id", "id", "long"),
        DeclaredColumn("user.name", "user_name", "string"),
        DeclaredColumn("amount", "amount", "decimal(18,2)"),
        DeclaredColumn("", "at", "timestamp", "milliseconds"),
    )


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": '"a"', "type": '"int"'}, 'columns[0].type: "int" -> expected string, long, double'),
        ({"name": '"a"', "type": '"decimal(39,2)"'}, 'columns[0].type: "decimal(39,2)" -> expected string, long'),
        ({"name": '"a"', "type": '"decimal(2,3)"'}, "decimal(p,s) with 1 <= p <= 38 and 0 <= s <= p"),
        ({"name": '"a"', "type": '"list<int>"'}, 'columns[0].type: "list<int>" -> expected string, long, double'),
        ({"name": '"a"', "type": '"map<long, long>"'}, "-> expected string, as all keys are, and a comma at"),
        (
            {"name": '"a"', "type": '"list<timestamp>"', "epoch": '"seconds"'},
            'columns[0].epoch: "seconds" -> expected none',
        ),
        ({"name": '"a"', "type": "5"}, "columns[0].type: 5 -> expected string"),
        ({"name": '"a"'}, "columns[0].type: not set -> expected string"),
        ({"type": '"long"'}, "columns[0].name: not set -> expected the column's name"),
        ({"name": '""', "type": '"long"'}, 'columns[0].name: "" -> expected a string of at least one'),
        ({"name": "[1]", "type": '"long"'}, "columns[0].name: [1] -> expected a string of at least one"),
        ({"name": '"User"', "type": '"long"'}, 'columns[0].name: "User" -> expected 1 to 255 of a-z, 0-9 and _'),
        ({"name": '"a.b"', "type": '"long"'}, 'as schema.names is "safe"'),
        ({"name": f'"{"x" * 256}"', "type": '"long"'}, "expected 1 to 255"),
        ({"name": '"_source_file"', "type": '"long"'}, "expected a name that is not reserved"),
        ({"name": '"_Rescued_Data"', "type": '"long"'}, "expected a name that is not reserved"),
        ({"name": '"a"', "key": "7", "type": '"long"'}, "columns[0].key: 7 -> expected a string"),
        ({"name": '"a"', "type": '"long"', "kye": '"b"'}, "columns[0].kye: unknown key -> expected one of name, type"),
        ({"name": '"a"', "type": '"long"', "epoch": '"seconds"'}, 'columns[0].epoch: "seconds" -> expected none'),
        (
            {"name": '"a"', "type": '"timestamp"', "epoch": '"days"'},
            "-> expected one of seconds, milliseconds, microseconds",
        ),
        ({"name": '"a"', "type": '"timestamp"', "epoch": "[1]"}, "columns[0].epoch: [1] -> expected one of seconds"),
    ],
)
def test_a_wrong_column(fields: dict[str, str], expected: str) -> None:
    """One fault of a column is one line: where, what it is, and what was expected."""
    (fault,) = faults(column(**fields))
    assert expected in fault


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no columns -> expected at least one [[columns]]"),
        ("columns = []", "no columns -> expected at least one"),
        ("columns = 5", "columns: 5 -> expected one [[columns]]"),
        ("columns = [1]", "columns: [1] -> expected one [[columns]]"),
        ("no toml", "-> expected TOML"),
        (b"\xff", "byte 0 is not UTF-8 -> expected TOML"),
        ("a = " + "[" * 5000, "-> expected TOML"),
        ("a = " + "9" * 5000, "-> expected TOML"),
        (column(name='"a"', type='"long"') * 2, 'columns[0], columns[1]: name "a" -> expected each name once'),
    ],
)
def test_a_wrong_file(text: str | bytes, expected: str) -> None:
    """A file without columns is refused, with what was found."""
    assert any(expected in fault for fault in faults(text))


def test_names_and_keys_come_once() -> None:
    """Two columns of one name or of one key are refused; in `exact` names may differ in case only."""
    twice = column(name='"a"', type='"long"') + column(name='"b"', key='"a"', type='"long"')
    assert faults(twice) == ['columns[0], columns[1]: key "a" -> expected each key once']
    cases = column(name='"a"', type='"long"') + column(name='"A"', type='"long"')
    assert [fault for fault in faults(cases) if "once" in fault] == [
        'columns[0], columns[1]: name "a" -> expected each name once'
    ]
    assert [each.name for each in parsed(cases, "exact")] == ["a", "A"]
    assert [each.name for each in parsed(column(name='"user.näme"', type='"long"'), "exact")] == ["user.näme"]


def test_types_that_the_settings_refuse() -> None:
    """A type that no column may have is named with the settings that it needs."""
    for kind, spelled in (("date", "date"), ("map< string, struct<date: date> >", "map<string,struct<date:date>>")):
        text = column(name='"a"', type=f'"{kind}"')
        assert parsed(text) == (DeclaredColumn("a", "a", spelled),)
        with pytest.raises(SettingsError) as caught:
            parsed(text, refused={"date": "a table", "timestamp_ns": "no table"})
        [fault] = caught.value.faults
        assert fault == f'{WHERE}: columns[0].type: "date" -> expected a table in the settings, or a different type'


def test_too_many_columns() -> None:
    """A file may not declare more columns than there may be."""
    text = "".join(column(name=f'"c{number}"', type='"long"') for number in range(3))
    assert len(parsed(text, max_columns=3)) == 3
    assert faults(text, max_columns=2) == ["3 columns -> expected at most schema.max_columns = 2"]


def test_all_faults_come_at_once() -> None:
    """Faults of the file, of each column and between columns are all reported together."""
    text = (
        "version = 1\n"
        + column(name='"A"', type='"int"', epoch='"x"')
        + column(key='"k"', kind='"long"')
        + column(name='"a"', key='"k"', type='"decimal(0,0)"')
    )
    found = faults(text, max_columns=2)
    assert [fault.partition(": ")[0].partition(" ->")[0] for fault in found] == [
        '"version"', "3 columns", "columns[0].name", "columns[0].type", "columns[1].kind",
        "columns[1].name", "columns[1].type", "columns[2].type", "columns[0], columns[2]", "columns[1], columns[2]",
    ]  # fmt: skip


def test_a_key_longer_than_keys_of_columns_may_be():
    """Its values would be rescued before its column is seen. Characters count, not bytes."""
    text = '[[columns]]\nname = "a"\nkey = "{}"\ntype = "long"\n'
    assert parsed(text.format("é" * 256))[0].key == "é" * 256
    expected = "columns[0].key: a key of 257 characters -> expected at most 256"
    assert faults(text.format("é" * 257)) == [expected]
