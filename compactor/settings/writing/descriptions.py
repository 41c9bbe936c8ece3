"""Describes settings in words: types, bounds, units, and the comment behind a key."""

import typing
from typing import Any, Literal

from pydantic.fields import FieldInfo

from compactor.settings.validation import Expected

UNITS = (
    *(
        "bytes",
        "seconds",
        "hours",
        "days",
        "manifests",
        "columns",
        "characters",
        "lines",
        "files",
        "attempts",
        "failures",
    ),
    *("shards", "snapshots", "partitions"),
)
"""Units of numbers. The name of a numeric key contains one of these words."""

_YEAR_SECONDS = 366 * 86_400  # rounded up, so that ten years always fit
_BINARY = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def default_of(field: FieldInfo) -> Any:
    """The default of a key that has one."""
    return field.get_default(call_default_factory=True)


def unit(key: str, field: FieldInfo) -> str:
    """The unit of a numeric key, taken from its name; empty for other keys."""
    if field.annotation not in {int, float}:
        return ""
    return next((word for word in reversed(key.split("_")) if word in UNITS), "")


def type_in_words(key: str, field: FieldInfo) -> str:
    """Type, choices and bounds of a key, such as `1 to 1,000` or `> 0, up to 316,224,000 (10 years)`."""
    said = next((each.words for each in field.metadata if isinstance(each, Expected)), None)
    kind: Any = typing.get_origin(field.annotation) or field.annotation
    if kind is Literal:
        *choices, last = (f"`{choice}`" for choice in typing.get_args(field.annotation))
        return f"{', '.join(choices)} or {last}"
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return _bounds(key, field)
    return said or "text"


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
    years = found["le"] / _YEAR_SECONDS if unit(key, field) == "seconds" else 0
    highest = shown["le"] + (f" ({years:g} years)" if years >= 1 else "")
    return f"{shown['ge']} to {highest}" if "ge" in shown else f"> {shown['gt']}, up to {highest}"
