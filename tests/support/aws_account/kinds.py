"""What AWS's schemas say of a type of resource: its properties, and those that only a new resource can have."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

REGION = "us-east-1"  # whose schemas are complete


@cache
def schema(kind: str) -> dict[str, Any]:
    """The schema of a type."""
    folder = files("cfnlint.data.schemas")
    name = _names()[kind]
    found: dict[str, Any] = json.loads(folder.joinpath("resources", f"{name}.json").read_text())
    return found


@cache
def _names() -> dict[str, str]:
    found: dict[str, str] = json.loads(
        files("cfnlint.data.schemas").joinpath("providers", f"{REGION}.json").read_text()
    )
    return found


def faults(kind: str, properties: Mapping[str, Any]) -> Iterator[str]:
    """What a resource has that its type does not take, or lacks that it needs."""
    found = schema(kind)
    read_only = {path.rpartition("/")[2] for path in found.get("readOnlyProperties", ()) if path.count("/") == 2}
    for name, value in properties.items():
        about = found["properties"].get(name)
        if about is None or name in read_only:
            yield f"unsupported property {name}"
        elif "enum" in about and str(value) not in map(str, about["enum"]):
            yield f"{name}: {value} is not one of {about['enum']}"
        elif _is_number(value) and float(value) < about.get("minimum", float("-inf")):
            yield f"{name}: {value} is less than {about['minimum']}"
    yield from (f"required property {name} is missing" for name in found.get("required", ()) if name not in properties)


def _is_number(value: Any) -> bool:
    return str(value).removeprefix("-").isdecimal()


def replaced_by(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The changed properties that need another resource."""
    paths = [path.removeprefix("/properties/") for path in schema(kind).get("createOnlyProperties", ())]
    return [path for path in paths if _at(before, path) != _at(after, path)]


def _at(properties: Mapping[str, Any], path: str) -> Any:
    node: Any = properties
    for key in path.split("/"):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
