"""How settings read: types and bounds in words, units, values as TOML, and the comment that stands behind a key."""

import typing
from typing import Any, Literal

from pydantic.fields import FieldInfo

from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR, Expected

UNITS = ("bytes", "seconds", "days", "manifests", "columns", "attempts", "failures")
"""What numbers count: the name of a key has one of these words in it."""

_BINARY = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def default_of(field: FieldInfo) -> Any:
    """The value of a key that is not set. Only for keys that have one."""
    return field.get_default(call_default_factory=True)


def environment_name(section: str, key: str) -> str:
    """The environment variable that overrides a key."""
    return f"{ENV_PREFIX}{section.upper()}{ENV_SEPARATOR}{key.upper()}"


def unit(key: str, field: FieldInfo) -> str:
    """What a number counts, by the name of its key; nothing for what is no number."""
    if field.annotation not in {int, float}:
        return ""
    return next((word for word in reversed(key.split("_")) if word in UNITS), "")


def type_in_words(key: str, field: FieldInfo) -> str:
    """Type, choices and bounds of a key, such as `whole number, 1 to 1,000`."""
    said = next((each.words for each in field.metadata if isinstance(each, Expected)), None)
    kind: Any = typing.get_origin(field.annotation) or field.annotation
    if kind is Literal:
        return _either([f"`{choice}`" for choice in typing.get_args(field.annotation)])
    if kind in {int, float}:
        return f"{'whole number' if kind is int else 'number'}, {_bounds(key, field)}"
    if said is None:
        return "text"
    return f"text: {said}" if kind is str else said


def comment(key: str, field: FieldInfo, value: Any) -> str:
    """What stands behind a key in a settings file: its meaning, and a large number of bytes in short."""
    if unit(key, field) == "bytes" and (short := binary_size(value)):
        return f"{short}: {field.description}"
    return str(field.description)


def binary_size(length_bytes: int) -> str:
    """A whole number of a binary unit, such as `128 MiB`; nothing for any other number of bytes."""
    return next(
        (f"{length_bytes // each} {name}" for each, name in _BINARY if length_bytes and not length_bytes % each), ""
    )


def _bounds(key: str, field: FieldInfo) -> str:
    """The least and the greatest value, which pydantic keeps as annotations called `ge`, `gt` and `le`."""
    found = {
        name: bound
        for each in field.metadata
        for name in ("ge", "gt", "le")
        if (bound := getattr(each, name, None)) is not None
    }
    shown = {
        name: binary_size(bound) if unit(key, field) == "bytes" and bound > 1 else f"{bound:,}"
        for name, bound in found.items()
    }
    return f"{shown.get('ge') or 'more than ' + shown['gt']} to {shown['le']}"


def _either(choices: list[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
