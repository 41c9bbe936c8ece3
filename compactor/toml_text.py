"""Settings as the text of a TOML file, which Python reads and does not write. No I/O."""

import json
from collections.abc import Iterable, Mapping
from typing import Any


def toml_of(document: Mapping[str, Mapping[str, Any]], comment: Iterable[str] = ()) -> str:
    """A document of sections as TOML.

    Args:
        document: Sections of strings, numbers, booleans, and lists or tables of them.
        comment: Lines to begin with.
    """
    lines = [f"# {line}".rstrip() for line in comment]
    for name, table in document.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are spelled as in JSON
