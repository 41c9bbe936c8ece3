"""The order in which CloudFormation creates resources: what a resource names comes before it."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.resolved import Resolver
from tests.support.aws_account.rules import Refused


def created_in_order(template: Mapping[str, Any], resolver: Resolver, late: str = "") -> list[str]:
    """The resources that the conditions let be, each after those that it refers to.

    `late` comes after all that does not need it, as a creation that takes long.

    Raises:
        Refused: They refer to each other in a circle, or to one that is not created.
    """
    there = {
        name: each
        for name, each in template["Resources"].items()
        if "Condition" not in each or resolver.holds(each["Condition"])
    }
    needs = {name: set(_named(each, resolver)) & template["Resources"].keys() for name, each in there.items()}
    ordered: list[str] = []
    while needs:
        if missing := {(name, each) for name, others in needs.items() for each in others - there.keys()}:
            raise Refused("dependency", f"unresolved resource dependencies {sorted(missing)}")
        free = [name for name, others in needs.items() if others <= set(ordered)]
        free = [name for name in free if name != late] or free
        if not free:
            raise Refused("dependency", f"circular dependency between resources {sorted(needs)}")
        ordered += free
        needs = {name: others for name, others in needs.items() if name not in free}
    return ordered


def _named(node: Any, resolver: Resolver) -> Iterator[str]:
    """The names that a value of the template mentions, in the branches that are taken."""
    if isinstance(node, list):
        for each in node:
            yield from _named(each, resolver)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key == "Ref":
            yield value
        elif key == "Fn::GetAtt":
            yield value.partition(".")[0] if isinstance(value, str) else value[0]
        elif key == "Fn::Sub":
            yield from (part.partition("}")[0].partition(".")[0] for part in value.split("${")[1:])
        elif key == "Fn::If":
            yield from _named(value[1] if resolver.holds(value[0]) else value[2], resolver)
        elif key == "DependsOn":
            yield from [value] if isinstance(value, str) else value
        else:
            yield from _named(value, resolver)
