"""Writes a profile as a schema file, with comments that say what each type rests on. No I/O."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compactor.core.text.formatting import count
from compactor.core.text.safe_text import visible
from compactor.schema.column_profile import SHOWN_CHARACTERS, ColumnProfile, Example, TableProfile
from compactor.schema.inference import Inferred, infer
from compactor.schema.schema import RESERVED_NAMES, Names, column_name
from compactor.settings.writing.toml import toml

_NOT_ASCII = re.compile(r"[^ -~]")


@dataclass(frozen=True, slots=True)
class SuggestionRules:
    """What a schema file may hold, by the settings.

    Attributes:
        names: The naming rule for columns.
        max_columns: The most columns.
        max_key_characters: The longest key of a column.
        types: Types that the pattern of lines of text gives to keys, whatever their values look like.
        has_nanoseconds: Whether columns may be of the type `timestamp_ns`.
    """

    names: Names
    max_columns: int
    max_key_characters: int
    types: Mapping[str, str] = field(default_factory=dict)
    has_nanoseconds: bool = True


def suggestion(
    profile: TableProfile, rules: SuggestionRules, *, header: Sequence[str], file_name: Callable[[int], str]
) -> str:
    """A schema file with the columns of a profile, in first-seen order.

    Args:
        profile: Has at least one column.
        rules: What the file may hold.
        header: Comment lines to begin with.
        file_name: The name of a file by its number in the places of examples.
    """
    lines = [*(_comment(line) for line in header)]
    used = set(RESERVED_NAMES)
    fitting = [(key, each) for key, each in profile.in_order() if len(key) <= rules.max_key_characters]
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
        limits = f"schema.max_columns = {rules.max_columns}, schema.max_key_characters = {rules.max_key_characters}"
        lines += ["", _comment(f"{more}{count(max(left_out, 1), 'key')} left out: {limits}.")]
    return "\n".join(lines) + "\n"


def _found(column: ColumnProfile, inferred: Inferred, file_name: Callable[[int], str]) -> Iterator[str]:
    """What was found of a column, in lines."""
    found = f"{count(column.values, 'value')}, {column.nulls:,} null"
    misfits = sum(each.values for each in inferred.misfits)
    if inferred.narrower:
        yield f"{found}. {count(misfits, 'misfit')} for {inferred.narrower}, so it stays a string:"
    elif misfits:
        yield f"{found}. {misfits:,} of other kinds than most, so it stays a string:"
    else:
        yield f"{found}, 0 misfits"
    for each in inferred.misfits:
        yield f"  {each.values:,} {each.kind}: {_shown(each.example, file_name)}"
    if inferred.type.startswith("timestamp"):
        formats = sorted(column.formats.items(), key=lambda item: (-item[1], item[0]))
        yield f"formats: {', '.join(f'{name} ({number:,})' for name, number in formats)}"
    if inferred.type == "timestamp_ntz":
        yield "times without a zone: no instants, so no reader converts them to its own zone"
    if inferred.type == "timestamp_ns":
        finer = column.examples["nanoseconds"]
        yield f"to the nanosecond, for the sake of {column.shapes['nanoseconds']:,}: {_shown(finer, file_name)}"


def _shown(example: Example, file_name: Callable[[int], str]) -> str:
    cut = "..." if len(example.text) == SHOWN_CHARACTERS else ""
    text = f"{_toml(example.text)}{cut}" if example.is_string else f"{example.text}{cut}"
    return f"{text} ({file_name(example.place.file)}:{example.place.line})"


def _comment(line: str) -> str:
    return f"# {visible(line)}".rstrip()


def _toml(text: str) -> str:
    """A string in TOML, in which all that acts on a terminal or cannot be seen is escaped."""
    return _NOT_ASCII.sub(lambda found: _escaped(found[0]), toml(text))


def _escaped(character: str) -> str:
    if visible(character) == character:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"  # noqa: PLR2004 - four digits
