"""Descriptions of settings: the tables of `docs/reference-settings.md` and the comments of settings files."""

import re
import tomllib
from collections.abc import Collection, Iterator

from pydantic.fields import FieldInfo

from compactor.settings.settings import SECTIONS
from compactor.settings.streams import OWN_KEYS, OneStream
from compactor.settings.template import binary_size, comment, default_of, type_in_words, unit
from compactor.settings.toml import toml
from tools.document_tables import with_tables

_HEAD = "| key | meaning | value | default |\n|---|---|---|---|"
_SECTION = re.compile(r"\[(\w+)\]")
_KEY = re.compile(r"(\w+) = (.*?)(  # .*)?")


def with_reference(document: str) -> str:
    """A document with every section as a heading, a sentence and a table; a `ValueError` if their mark is missing."""
    tables = {**SECTIONS}
    tables["streams"] = OneStream
    reference = "\n\n".join(
        "\n".join(
            [f"## {name}\n\n{(model.__doc__ or '').strip()}\n\n{_HEAD}"]
            + [_row(key, field) for key, field in model.model_fields.items()]
        )
        for name, model in tables.items()
    )
    own = ", ".join(f"`{section}.{key}`" for section, keys in OWN_KEYS.items() for key in _in_order(section, keys))
    reference += f"\n\nKeys that a stream may set for itself: {own}."
    return with_tables(document, {"settings": reference})


def _in_order(section: str, keys: Collection[str]) -> list[str]:
    """All keys of a section as one, or some of them in its order."""
    known = SECTIONS[section].model_fields
    return ["*"] if len(keys) == len(known) else [key for key in known if key in keys]


def with_comments(text: str) -> str:
    """A settings file in TOML with the current description after each key, which is on one line with its value."""
    values = tomllib.loads(text)
    return "\n".join(_commented(text.split("\n"), values))


def _commented(lines: list[str], values: dict[str, dict[str, object]]) -> Iterator[str]:
    section = ""
    for line in lines:
        if heading := _SECTION.match(line):
            section = heading[1]
        found = _KEY.fullmatch(line)
        field = SECTIONS[section].model_fields.get(found[1]) if found and section in SECTIONS else None
        if found and field:
            yield f"{found[1]} = {found[2]}  # {comment(found[1], field, values[section][found[1]])}"
        else:
            yield line


def _row(key: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{toml(default_of(field))}`"
    if unit(key, field) == "bytes" and (short := binary_size(default_of(field))):
        default += f" ({short})"
    cells = (
        f"`{key}`",
        str(field.description),
        type_in_words(key, field),
        default,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
