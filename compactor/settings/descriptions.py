"""Describes settings in words: types, bounds, units, and the comment behind a key."""

import typing
from typing import Any, Literal

from pydantic.fields import FieldInfo

from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR, Expected

UNITS = ("bytes", "seconds", "days", "manifests", "columns", "characters", "lines", "attempts", "failures")
"""Units of numbers. The name of a numeric key contains one of these words."""

_YEAR_SECONDS = 366 * 86_400  # rounded up, so that ten years always fit
_BINARY = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def default_of(field: FieldInfo) -> Any:
    """The default of a key that has one."""
    return field.get_default(call_default_factory=True)


def environment_name(section: str, key: str) -> str:
    """The environment variable that overrides a key."""
    return f"{ENV_PREFIX}{section.upper()}{ENV_SEPARATOR}{key.upper()}"


def unit(key: str, field: FieldInfo) -> str:
    """The unit of a numeric key, taken from its name; empty for other keys."""
    if field.annotation not in {int, float}:
        return ""
    return next((word for word in reversed(key.split("_")) if word in UNITS), "")


def type_in_words(key: str, field: FieldInfo) -> str:
    """Type, choices and bounds of a key, such as `whole number, 1 to 1,000` or `> 0, up to 316,224,000 (10 years)`."""
    said = next((each.words for each in field.metadata if isinstance(each, Expected)), None)
    kind: Any = typing.get_origin(field.annotation) or field.annotation
    if kind is Literal:
        return _either([f"`{choice}`" for choice in typing.get_args(field.annotation)])
    if kind in {int, float}:
        bounds = _bounds(key, field)
        return f"whole number, {bounds}" if kind is int else bounds
    if said is None:
        return "text"
    return f"text: {said}" if kind is str else said


def comment(key: str, field: FieldInfo, value: Any) -> str:
    """The comment behind a key in a settings file: its description, preceded by the value in MiB or GiB for bytes."""
    if unit(key, field) == "bytes" and (short := binary_size(value)):
        return f"{short}: {field.description}"
    return str(field.description)


def binary_size(length_bytes: int) -> str:
    """A multiple of a binary unit, such as `128 MiB`; empty for other numbers of bytes."""
    return next(
        (f"{length_bytes // each} {name}" for each, name in _BINARY if length_bytes and not length_bytes % each), ""
    )


def _bounds(key: str, field: FieldInfo) -> str:
    """The bounds, which pydantic keeps as annotations named `ge`, `gt` and `le`."""
    bounds = [(name, getattr(each, name, None)) for each in field.metadata for name in ("ge", "gt", "le")]
    found = {name: bound for name, bound in bounds if bound is not None}
    shown = {
        name: binary_size(bound) if unit(key, field) == "bytes" and bound > 1 else f"{bound:,}"
        for name, bound in found.items()
    }
    highest = shown["le"] + _years(key, field, found["le"])
    return f"{shown['ge']} to {highest}" if "ge" in shown else f"> {shown['gt']}, up to {highest}"


def _years(key: str, field: FieldInfo, bound: float) -> str:
    years = bound / _YEAR_SECONDS if unit(key, field) == "seconds" else 0
    return f" ({years:g} years)" if years >= 1 else ""


def _either(choices: list[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}"
