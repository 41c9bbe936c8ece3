"""The shape of JSON documents: every path in them with its types, as seen in documents or as a schema says."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_TIME = re.compile(r"\d{4}-\d\d-\d\dT.*")
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ORDER = ("boolean", "integer", "number", "string", "time", "array", "object", "map", "null")

Shape = dict[str, str]
"""By path, such as `files[].uri`: a type, or several of them joined by ` or `."""


def shape_of(documents: Iterable[Any], maps: Collection[str]) -> Shape:
    """The shape of several documents of one kind together.

    Args:
        documents: As JSON was parsed.
        maps: The paths of objects whose keys are data: their values are at `path.*`.

    Raises:
        AssertionError: A time is not ISO 8601 in UTC.
    """
    seen: dict[str, set[str]] = {}
    for document in documents:
        _walk(document, "", maps, seen)
    return {
        path: " or ".join(sorted(_widest(path, types), key=_ORDER.index))
        for path, types in sorted(seen.items())
        if path
    }


def shape_of_schema(schema: Mapping[str, Any]) -> tuple[Shape, frozenset[str]]:
    """The shape of the documents that a JSON Schema describes, and the paths of objects whose keys are data."""
    seen: dict[str, set[str]] = {}
    maps: set[str] = set()
    _walk_schema(schema, "", schema.get("$defs", {}), seen, maps)
    shape = {path: " or ".join(sorted(types, key=_ORDER.index)) for path, types in sorted(seen.items()) if path}
    return shape, frozenset(maps)


def _walk_schema(
    node: Mapping[str, Any], path: str, named: Mapping[str, Any], seen: dict[str, set[str]], maps: set[str]
) -> None:
    if "$ref" in node:
        return _walk_schema(named[node["$ref"].rpartition("/")[2]], path, named, seen, maps)
    if "anyOf" in node:
        for each in node["anyOf"]:
            _walk_schema(each, path, named, seen, maps)
        return None
    kind = "time" if node.get("format") == "date-time" else node["type"]
    values = node.get("additionalProperties")
    if values:
        kind = "map"
        maps.add(path)
        _walk_schema(values, f"{path}.*", named, seen, maps)
    seen.setdefault(path, set()).add(kind)
    for key, each in node.get("properties", {}).items():
        _walk_schema(each, f"{path}.{key}" if path else key, named, seen, maps)
    if kind == "array":
        _walk_schema(node["items"], f"{path}[]", named, seen, maps)
    return None


def _walk(value: Any, path: str, maps: Collection[str], seen: dict[str, set[str]]) -> None:
    seen.setdefault(path, set()).add("map" if path in maps and isinstance(value, dict) else _type(value, path))
    if isinstance(value, list):
        for each in value:
            _walk(each, f"{path}[]", maps, seen)
    elif isinstance(value, dict):
        for key, each in value.items():
            name = "*" if path in maps else key
            _walk(each, f"{path}.{name}" if path else name, maps, seen)


def _type(value: Any, path: str) -> str:
    if isinstance(value, str) and _TIME.match(value) and not path.endswith(("message", "error", "detail")):
        assert _UTC.fullmatch(value), f"{path}: {value} is not in UTC with a Z"
        return "time"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return "null" if value is None else kinds[type(value)]


def _widest(path: str, types: set[str]) -> set[str]:
    """A whole number is a number; seconds may have a fraction even where none was seen."""
    if "integer" in types and ("number" in types or path.endswith("seconds")):
        return types - {"integer"} | {"number"}
    return types
