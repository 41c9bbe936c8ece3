"""Chooses column types from their profile, and writes a schema file with the evidence for each. No I/O."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.text.formatting import count
from compactor.core.text.json_numbers import MAX_PRECISION
from compactor.core.text.safe_text import visible
from compactor.schema.column_profile import (
    INSTANTS,
    NUMBERS,
    SHOWN_CHARACTERS,
    ColumnProfile,
    Example,
    Shape,
    TableProfile,
)
from compactor.schema.column_types import STORED_AS, parse_type, spelled_key
from compactor.schema.schema import MAX_KEY_CHARACTERS, RESERVED_NAMES, Names, column_name
from compactor.settings.toml import toml

_KINDS: dict[Shape, str] = {
    "long": "number",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
    **dict.fromkeys(INSTANTS, "timestamp"),
    "local_time": "time without a zone",
    "text": "text",
    "object_id": "$oid",
    "nested": "object or array",
}
"""The kind of each shape, in words. Values of two kinds share only the type `string`."""

_TYPES = {"boolean": "boolean", "date": "date", "time without a zone": "timestamp_ntz", "$oid": "objectid"}
"""The type of each kind that has only one."""


@dataclass(frozen=True, slots=True)
class Misfits:
    """Values that prevent a column from having the type of most of its values."""

    kind: str
    values: int
    example: Example


@dataclass(frozen=True, slots=True)
class Inferred:
    """A column's type.

    Attributes:
        type: As spelled in a schema file. Every profiled value fits it.
        narrower: The type of most values, if different from `type`; else empty.
        misfits: The values of minority kinds, and those that `narrower` would change.
    """

    type: str
    narrower: str = ""
    misfits: tuple[Misfits, ...] = ()


def infer(profile: ColumnProfile, *, has_nanoseconds: bool = True) -> Inferred:
    """Infer a column's type.

    A `long` holds plain integers. Other numbers are a `double` if each is the shortest spelling of one, and a decimal
    if digits would be lost. Instants are a `timestamp` if microseconds suffice, else a `timestamp_ns`. Values that fit
    none of these, and values of different kinds, stay strings. So do arrays and objects whose parts were not added.
    """
    kinds = Counter[str]()
    for shape, values in profile.shapes.items():
        kinds[_KINDS[shape]] += values
    if not kinds:
        return Inferred("string")
    main = max(kinds, key=lambda kind: (kinds[kind], kind))
    others = tuple(_misfits(profile, kind, kinds[kind]) for kind in sorted(kinds) if kind != main)
    if main == "object or array" and profile.parts is not None and not others:
        return Inferred(_nested_type(profile, profile.parts, has_nanoseconds=has_nanoseconds))
    if main in {"text", "object or array"} or (others and kinds[main] * 2 <= kinds.total()):
        return Inferred("string", "", others)
    if main == "number":
        narrower, changed = _number_type(profile)
    elif main == "timestamp":
        narrower, changed = _instant_type(profile, has_nanoseconds=has_nanoseconds)
    else:
        narrower, changed = _TYPES[main], ()
    misfits = (*changed, *others)
    return Inferred("string", narrower, misfits) if misfits else Inferred(narrower)


def _nested_type(profile: ColumnProfile, parts: Mapping[str | None, ColumnProfile], *, has_nanoseconds: bool) -> str:
    """The type for a column's arrays or objects: a map for objects with many keys, or with keys other than words."""
    found_types = {key: infer(part, has_nanoseconds=has_nanoseconds).type for key, part in parts.items()}
    types = {key: STORED_AS.get(found, found) for key, found in found_types.items()}
    kinds = {types[key] for key, part in parts.items() if part.values}
    part = kinds.pop() if len(kinds) == 1 else "string"
    if profile.arrays:
        found = f"list<{part}>" if profile.arrays == profile.shapes["nested"] else "string"
    elif types and all(key and spelled_key(key) == key for key in types):
        found = f"struct<{', '.join(f'{key}: {types[key]}' for key in types)}>"
    else:
        found = f"map<string, {part}>"
    try:
        parse_type(found)
    except ValueError:  # keys that differ only in case, or too many parts
        return "string"
    return found


def _misfits(profile: ColumnProfile, kind: str, values: int) -> Misfits:
    return Misfits(kind, values, min(found for shape, found in profile.examples.items() if _KINDS[shape] == kind))


def _instant_type(profile: ColumnProfile, *, has_nanoseconds: bool) -> tuple[str, tuple[Misfits, ...]]:
    """The type for a column's instants, and those that it would change."""
    shapes, examples = profile.shapes, profile.examples
    if not shapes["nanoseconds"]:
        return "timestamp", ()
    if not has_nanoseconds:
        return "timestamp", (Misfits("finer than a microsecond", shapes["nanoseconds"], examples["nanoseconds"]),)
    if shapes["distant_timestamp"]:
        far = Misfits("outside the years 1678 to 2261", shapes["distant_timestamp"], examples["distant_timestamp"])
        return "timestamp_ns", (far,)
    return "timestamp_ns", ()


def _number_type(profile: ColumnProfile) -> tuple[str, tuple[Misfits, ...]]:
    """The type for a column's numbers, and those that it would change."""
    digits, shapes = profile.digits, profile.shapes
    if not any(shapes[shape] for shape in NUMBERS if shape != "long"):
        return "long", ()
    if shapes["number"] and not digits.beyond_double:
        return "double", ()
    if not digits.beyond_decimal and digits.whole + digits.scale <= MAX_PRECISION:
        # Storage is the same for 19 to 38 digits, so later values may have more of them.
        return f"decimal({MAX_PRECISION},{digits.scale})", ()
    if digits.first_beyond_double is not None:
        lost = Misfits("number beyond double", digits.beyond_double, digits.first_beyond_double)
        return "double", (lost,)
    return "long", (Misfits("integer beyond 64 bits", shapes["integer"], profile.examples["integer"]),)


_NOT_ASCII = re.compile(r"[^ -~]")


@dataclass(frozen=True, slots=True)
class SuggestionRules:
    """What a schema file may contain, by the settings.

    Attributes:
        names: The naming rule for columns.
        types: Types that the pattern for lines of text gives to keys, whatever their values look like.
    """

    names: Names
    max_columns: int
    types: Mapping[str, str] = field(default_factory=dict)
    has_nanoseconds: bool = True


def suggestion(
    profile: TableProfile, rules: SuggestionRules, *, header: Sequence[str], file_name: Callable[[int], str]
) -> str:
    """A schema file with a profile's columns, in first-seen order.

    Args:
        profile: Has at least one column.
        rules: What the file may contain.
        header: Comment lines to start with.
        file_name: Returns a file's name by its number in the places of examples.
    """
    lines = [*(_comment(line) for line in header)]
    used = set(RESERVED_NAMES)
    fitting = [(key, each) for key, each in profile.columns.items() if len(key) <= MAX_KEY_CHARACTERS]
    for key, column in fitting[: rules.max_columns]:
        name = column_name(key, used, names=rules.names)
        used.add(name)
        inferred = infer(column, has_nanoseconds=rules.has_nanoseconds)
        given = rules.types.get(key, "")
        found = (
            [f"{count(column.values, 'value')}, typed by the pattern"] if given else _found(column, inferred, file_name)
        )
        lines += ["", *(_comment(line) for line in found)]
        lines += ["[[columns]]", f"name = {_toml(name)}"]
        lines += [] if key == name else [f"key = {_toml(key)}"]
        lines.append(f"type = {_toml(given or inferred.type)}")
    left_out = len(profile.columns) - len(fitting[: rules.max_columns])
    if left_out or profile.has_further_keys:
        more = "At least " if profile.has_further_keys else ""
        limits = f"at most schema.max_columns = {rules.max_columns} of at most {MAX_KEY_CHARACTERS} characters"
        lines += ["", _comment(f"{more}{count(max(left_out, 1), 'key')} left out: {limits}.")]
    return "\n".join(lines) + "\n"


def _found(column: ColumnProfile, inferred: Inferred, file_name: Callable[[int], str]) -> Iterator[str]:
    """Describe a column, in lines."""
    found = f"{count(column.values, 'value')}, {column.nulls:,} null"
    misfits = sum(each.values for each in inferred.misfits)
    if inferred.narrower:
        yield f"{found}. {count(misfits, 'misfit')} for {inferred.narrower}, so it stays a string:"
    elif misfits:
        yield f"{found}. {misfits:,} of minority kinds, so it stays a string:"
    else:
        yield f"{found}, 0 misfits"
    for each in inferred.misfits:
        yield f"  {each.values:,} {each.kind}: {_shown(each.example, file_name)}"
    if inferred.type.startswith("timestamp"):
        formats = sorted(column.formats.items(), key=lambda item: (-item[1], item[0]))
        yield f"formats: {', '.join(f'{name} ({number:,})' for name, number in formats)}"
    if inferred.type == "timestamp_ntz":
        yield "times without a zone: not instants, so no reader converts them to its own zone"
    if inferred.type == "timestamp_ns":
        finer = column.examples["nanoseconds"]
        yield f"nanoseconds, needed for {column.shapes['nanoseconds']:,}: {_shown(finer, file_name)}"


def _shown(example: Example, file_name: Callable[[int], str]) -> str:
    cut = "..." if len(example.text) == SHOWN_CHARACTERS else ""
    text = f"{_toml(example.text)}{cut}" if example.is_string else f"{example.text}{cut}"
    return f"{text} ({file_name(example.place.file)}:{example.place.line})"


def _comment(line: str) -> str:
    return f"# {visible(line)}".rstrip()


def _toml(text: str) -> str:
    """A string in TOML. Characters that control a terminal or are invisible are escaped."""
    return _NOT_ASCII.sub(lambda found: _escaped(found[0]), toml(text))


def _escaped(character: str) -> str:
    if visible(character) == character:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004 - four digits
