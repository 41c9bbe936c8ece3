"""Reads and changes parts of a template: statements of policies, dimensions of alarms, names in texts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deploy.resolved import Document


def copied(node: Any, **replaced: str) -> Any:
    """A copy in which some names between `${` and `}` are replaced by texts, and references to them by `Fn::Sub`."""
    text = json.dumps(node)
    for name, value in replaced.items():
        text = text.replace(json.dumps({"Ref": name}), json.dumps({"Fn::Sub": f"${{{name}}}"}))
        text = text.replace(f"${{{name}}}", json.dumps(value)[1:-1])
    return json.loads(text)


def named(places: Sequence[Any], names: Mapping[str, Sequence[str]]) -> list[Any]:
    """Resources of a statement, with one for each value of a name between `${` and `}`; none if it has no value."""
    found = list(places)
    for name, values in names.items():
        found = [copy for each in found for copy in _copies(each, name, values)]
    return found


def _copies(place: Any, name: str, values: Sequence[str]) -> list[Any]:
    text = json.dumps(place)
    is_named = f"${{{name}}}" in text or json.dumps({"Ref": name}) in text
    return [copied(place, **{name: value}) for value in values] if is_named else [place]


def statements_of(node: Any) -> Iterator[Document]:
    """The statements of the policies of a resource, also those that depend on a condition."""
    if isinstance(node, dict):
        if "Sid" in node and "Resource" in node:
            yield node
        else:
            for each in node.values():
                yield from statements_of(each)
    elif isinstance(node, list):
        for each in node:
            yield from statements_of(each)


def dimensions_of(node: Any) -> Iterator[list[Document]]:
    """The lists of dimensions of an alarm, also those of its expressions."""
    if isinstance(node, dict):
        for key, each in node.items():
            if key == "Dimensions":
                yield each
            else:
                yield from dimensions_of(each)
    elif isinstance(node, list):
        for each in node:
            yield from dimensions_of(each)
