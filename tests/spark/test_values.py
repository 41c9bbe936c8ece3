"""Values on their way through Spark: each comes out as the text that was written."""

import json

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

LITERALS = (
    "1.10", "1e2", "1E+2", "1e-7", "-0", "-0.0", "0", "1" * 40, "-" + "9" * 300, "1e308", "-1E-400", "0.1e0",
    "123456789.1234567890123456789", "0." + "1" * 5000, "true", "false", "[]", "{}", "[ ]", "{ }",
    '[1, 2 ,{"a" : 1.10}]', '{"a":"\\u00e9\\n", "a" :\t1E+2 }', '[[[ "]" , "}" , "\\"" ]]]', '{"k":{"k":[null , {} ]}}',
    '["é", "😀", "\\ud83d\\ude00", "\\/"]', '{"":""}', "[-0,1e-400," + "7" * 60 + "]",
)  # fmt: skip

STRINGS = (
    ('""', ""),
    ('" "', " "),
    ('"null"', "null"),
    ('"1.10"', "1.10"),
    ('"\\u0000"', "\0"),
    ('"a\\u0000b\\u001f"', "a\0b\x1f"),
    ('"\\b\\f\\n\\r\\t\\"\\\\\\/"', '\b\f\n\r\t"\\/'),
    ('"\\ud83d\\ude00"', "😀"),
    ('"😀 é ﷽"', "😀 é ﷽"),
    ('"\\uFFFE\\uffff\\ufeff\ufeff\u2028\x7f\x85"', "\ufffe\uffff\ufeff\ufeff\u2028\x7f\x85"),
    ('"[1, 2]"', "[1, 2]"),
    ('"NaN"', "NaN"),
)


def deep(levels: int) -> str:
    return "[" * levels + "]" * levels


def test_every_value_keeps_its_text(workspace):
    """Strings come out decoded, and everything else byte for byte as it was written."""
    expected = {f"s{number}": value for number, (_, value) in enumerate(STRINGS)}
    expected |= {f"x{number}": text for number, text in enumerate(LITERALS)}
    written = [f'{{"id":"s{number}","v":{text}}}' for number, (text, _) in enumerate(STRINGS)]
    written += [f' {{"v" :\t{text} ,"id" : "x{number}" }}\r' for number, text in enumerate(LITERALS)]
    compacted = workspace.compact({"a.ndjson": "\n".join(written).encode()})
    assert {name: record["v"] for name, record in compacted.by("id").items()} == expected
    assert compacted.rejects == []


def test_null_missing_and_empty_differ_as_they_should(workspace):
    """Null and missing are null, an empty string stays one; of a repeated key the last value holds, null too."""
    lines = [
        b'{"id":"null","v":null}',
        b'{"id":"missing"}',
        b'{"id":"empty","v":""}',
        b'{"id":"last","v":1,"v":2.50}',
        b'{"id":"last null","v":1,"v":null}',
        b'{"id":"escaped key","v":1,"\\u0076":"2"}',
        b'{"id":"nested","v":{"a":1,"a":null}}',
        b'{"id":"first","v":3}',
    ]
    values = {row["id"]: row["v"] for row in workspace.compact({"a": b"\n".join(lines)}).rows}
    assert values == {
        "null": None,
        "missing": None,
        "empty": "",
        "last": "2.50",
        "last null": None,
        "escaped key": "2",
        "nested": '{"a":1,"a":null}',
        "first": "3",
    }


def test_long_and_deep_values_survive(workspace):
    """Neither strings of megabytes, nor long numbers, nor a thousand brackets are cut, also across Spark's splits."""
    values = {
        "string": json.dumps("é\n" * 700_000),
        "number": "0." + "8" * 1_200_000,
        "list": "[" + " 1.10," * 300_000 + " 1]",
        "deep": deep(1_000),
        "deep object": '{"a":' * 900 + "1e1" + "}" * 900,
        "many keys": "{" + ",".join(f'"key{number}":{number}' for number in range(100_000)) + "}",
    }
    lines = [f'{{"id":"{name} {copy}","v":{text}}}' for name, text in values.items() for copy in range(2)]
    found = workspace.compact({"a": "\n".join(lines).encode()}).by("id")
    for name, text in values.items():
        for copy in range(2):
            assert found[f"{name} {copy}"]["v"] == (json.loads(text) if name == "string" else text), name


def test_objects_without_keys_are_rows(workspace):
    """An object that holds nothing is a line like any other, also where no key was ever seen."""
    assert workspace.compact({"a": b"{}\n{ }\n"}).rows == [{"_": None}] * 2


def test_rows_tell_where_they_come_from(new_workspace):
    """The metadata columns hold the manifest, the moment its attempt began, and the file."""
    workspace = new_workspace(schema={"metadata_columns": ["_source_file", "_processed_at", "_manifest_id"]})
    compacted = workspace.compact({"a": b'{"v":1}', "b": b'{"v":2}'})
    facts = {(row["v"], row["_source_file"], row["_manifest_id"], row["_processed_at"]) for row in compacted.rows}
    started = compacted.commit.started_at
    assert facts == {("1", workspace.raw + "a", "m", started), ("2", workspace.raw + "b", "m", started)}


BLANKS = st.text(" \t", max_size=3)
KEYS = st.sampled_from(["a", "A", "b.c", "", "é", "value", "_metadata", "a b", "\U0001d4b3", '"', "\\", "\0"])


def written_strings() -> st.SearchStrategy[tuple[str, str]]:
    """JSON strings with what they mean; plain or all in escapes."""
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    return st.tuples(text, st.booleans()).map(lambda drawn: (json.dumps(drawn[0], ensure_ascii=drawn[1]), drawn[0]))


NUMBERS = st.builds(
    "{}{}{}".format,
    st.one_of(st.just("-0"), st.integers(-(10**40), 10**40)),
    st.sampled_from(["", "", ".0", ".10", ".1234567890123456789"]),
    st.sampled_from(["", "", "e0", "E+2", "e-07"]),
)
LEAVES = st.one_of(NUMBERS, st.sampled_from(["true", "false", "null"]), written_strings().map(lambda pair: pair[0]))


def spaced(parts: list[str], opening: str, closing: str, blanks: list[str]) -> str:
    """A container of these parts, with white space wherever it may be."""
    around = iter(blanks * (2 * len(parts) + 2))
    inside = ",".join(next(around) + part + next(around) for part in parts)
    return f"{opening}{inside or next(around)}{closing}"


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    blanks = st.lists(BLANKS, min_size=1, max_size=3)
    lists = st.builds(spaced, st.lists(inner, max_size=3), st.just("["), st.just("]"), blanks)
    members = st.builds(lambda key, space, value: f"{key[0]}{space}:{space}{value}", written_strings(), BLANKS, inner)
    objects = st.builds(spaced, st.lists(members, max_size=3), st.just("{"), st.just("}"), blanks)
    return st.one_of(lists, objects)


RAW_VALUES = st.recursive(LEAVES, containers, max_leaves=6).filter(lambda text: not text.startswith('"'))
VALUES = st.one_of(written_strings(), RAW_VALUES.map(lambda text: (text, None if text == "null" else text)))


@st.composite
def drawn_objects(draw: st.DrawFn) -> tuple[list[str], list[str], str, dict[str, str | None]]:
    """The members of an object, the white space in it, the end of its line, and its top-level values as text."""
    members, values = [], {}
    for key in draw(st.lists(KEYS, max_size=6)):
        written, value = draw(VALUES)
        members.append(f"{json.dumps(key, ensure_ascii=draw(st.booleans()))}{draw(BLANKS)}:{draw(BLANKS)}{written}")
        values[key] = value
    blanks = draw(st.lists(BLANKS, min_size=1, max_size=3))
    return members, blanks, draw(st.sampled_from(["", " ", "\t", "\r"])), values


@seed(20251221)
@settings(
    max_examples=2,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(drawn_objects(), min_size=40, max_size=60))
def test_any_object_keeps_its_values(new_workspace, drawn):
    """Whatever JSON objects are written with whatever white space, each top-level value comes out as its text."""
    lines = [
        blanks[0] + spaced([f'"id":"{number}"', *members], "{", "}", blanks) + end
        for number, (members, blanks, end, _) in enumerate(drawn)
    ]
    found = new_workspace().compact({"a": "\n".join(lines).encode()}).by("id")
    for number, (*_, values) in enumerate(drawn):
        expected = {key: value for key, value in values.items() if value is not None}
        assert found[str(number)] == {"id": str(number), **expected}, lines[number]
