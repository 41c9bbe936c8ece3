"""Writes settings as TOML, which Python's standard library only reads. No I/O."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_GROUPED_FROM = 10_000  # four digits need no grouping


def toml_of(document: Mapping[str, Mapping[str, Any]], comment: Iterable[str] = ()) -> str:
    """Sections of strings, numbers, booleans, and lists or tables of these, as TOML below a comment."""
    lines = [f"# {line}".rstrip() for line in comment]
    for name, table in document.items():
        lines += ["", f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def toml(value: Any) -> str:
    """A value in TOML syntax."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:_}" if value >= _GROUPED_FROM else str(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml(str(key))} = {toml(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    # A basic string of TOML uses the escapes of JSON and must also escape DEL (TOML 1.0, "String").
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
