"""The JSON Schemas of what commands print: `python -m tools.json_schemas` writes the shipped files from the types."""

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from pydantic import TypeAdapter

from compactor.cli import documents

FOLDER = Path(documents.__file__).parents[1] / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = tuple(module.name for module in iter_modules(documents.__path__) if module.name != "common")
"""The commands that print a JSON document."""


def schema_of(name: str) -> dict[str, Any]:
    """The schema of what a command prints."""
    root = import_module(f"{documents.__name__}.{name}").Root
    schema = TypeAdapter(root).json_schema(mode="serialization")
    return {"$schema": DIALECT, "title": f"compactor {name} --json", **_without_titles(schema)}


def text_of(schema: dict[str, Any]) -> str:
    """The content of a shipped file."""
    return json.dumps(schema, indent=2) + "\n"


def _without_titles(node: Any) -> Any:
    """A schema less the titles that pydantic makes of names; a property may be called `title`."""
    if isinstance(node, list):
        return [_without_titles(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: _without_titles(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in NAMES:
        (FOLDER / f"{name}.schema.json").write_text(text_of(schema_of(name)))
