"""Stacks: created in order, rolled back after a failure, updated and deleted by the policies of their resources."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.resolved import Document, Resolver, pseudo_parameters
from tests.support.aws_account.account import Account
from tests.support.aws_account.arns import NUMBER, REGION, filled, physical_name
from tests.support.aws_account.kinds import replaced_by
from tests.support.aws_account.references import created_in_order
from tests.support.aws_account.resource import Resource, has_own_name
from tests.support.aws_account.rules import Refused

MAX_PARAMETER_BYTES, MAX_TEMPLATE_BYTES = 4096, 1_000_000
KEEPS = {"Retain", "RetainExceptOnCreate"}
_CAN_BE_UPDATED = {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"}


@dataclass(slots=True)
class Stack:
    """A stack, its resources in the order of their creation, and its failures in the order they came."""

    name: str
    status: str = "REVIEW_IN_PROGRESS"
    template: Document = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    failures: list[tuple[str, str, str]] = field(default_factory=list)  # resource, status, reason


@dataclass(slots=True)
class Plan:
    """A template with its parameters filled in."""

    template: Document
    resources: dict[str, Resource]  # in the order of their creation
    outputs: dict[str, str]


def planned(stack: str, template: Mapping[str, Any], parameters: Mapping[str, str], late: str = "") -> Plan:
    """The resources of a template, `late` after all that does not need it; `Refused` if it cannot be filled in."""
    if len(json.dumps(template).encode()) > MAX_TEMPLATE_BYTES:
        raise Refused("size of the template", f"the template is larger than {MAX_TEMPLATE_BYTES} bytes")
    for name, given in parameters.items():
        if len(given.encode()) > MAX_PARAMETER_BYTES:
            raise Refused("size of a parameter", f"parameter {name}: {len(given.encode())} bytes")
    for name, about in template["Parameters"].items():
        value = parameters.get(name, about.get("Default"))
        fits = value is not None and re.fullmatch(about.get("AllowedPattern", "(?s:.*)"), str(value))
        if not fits or str(value) not in map(str, about.get("AllowedValues", [value])):
            raise Refused("parameter", f"parameter {name}: {value}")
        if float(about.get("MinValue", "-inf")) > float(value if "MinValue" in about else 0):
            raise Refused("parameter", f"parameter {name}: {value} is less than {about['MinValue']}")
    for name in parameters.keys() - template["Parameters"].keys():
        raise Refused("parameter", f"parameter {name}: the template has none")
    resolver = Resolver(template, {**pseudo_parameters(REGION, NUMBER), **parameters})
    made = {}
    for logical in created_in_order(template, resolver, late):
        kind = template["Resources"][logical]["Type"]
        properties = resolver.value(template["Resources"][logical].get("Properties", {}))
        made[logical] = Resource(kind, physical_name(kind, properties, stack, logical), properties, stack, logical)
    outputs = {
        name: str(filled(resolver.value(each["Value"]), made))
        for name, each in template.get("Outputs", {}).items()
        if "Condition" not in each or resolver.holds(each["Condition"])
    }
    return Plan(dict(template), made, outputs)


class Stacks:
    """The stacks of an account."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.stacks: dict[str, Stack] = {}

    def deploy(self, name: str, plan: Plan) -> Stack:
        """Create or update a stack. A failure is in its status and its failures."""
        stack = self.stacks.setdefault(name, Stack(name))
        if stack.status == "REVIEW_IN_PROGRESS":
            self._create(stack, plan)
        elif stack.status in _CAN_BE_UPDATED:
            self._update(stack, plan)
        else:
            raise Refused("state of the stack", f"stack {name} is in {stack.status} state and can not be updated")
        if stack.status in _CAN_BE_UPDATED:
            stack.outputs = plan.outputs
        return stack

    def delete(self, name: str) -> Stack:
        """Delete a stack; what a policy retains stays in the account, without a stack."""
        stack = self.stacks[name]
        for logical in reversed([*stack.resources]):
            self._remove(stack, logical, retained=_policy(stack.template, logical) in KEEPS)
        if stack.resources:
            stack.status = "DELETE_FAILED"
        else:
            del self.stacks[name]
        return stack

    def _create(self, stack: Stack, plan: Plan) -> None:
        stack.template = plan.template
        try:
            self._add(stack, plan, [*plan.resources])
        except Refused as exc:
            stack.failures.append((str(exc.__notes__[0]), "CREATE_FAILED", str(exc)))
            self._undo(stack, [*stack.resources])
            stack.status = "ROLLBACK_FAILED" if stack.resources else "ROLLBACK_COMPLETE"
        else:
            stack.status = "CREATE_COMPLETE"

    def _add(self, stack: Stack, plan: Plan, logicals: list[str]) -> None:
        for logical in logicals:
            try:
                self.account.create(plan.resources[logical])
            except Refused as exc:
                exc.add_note(logical)
                raise
            stack.resources[logical] = plan.resources[logical]

    def _undo(self, stack: Stack, logicals: list[str]) -> None:
        """Delete what this operation has created: only Retain keeps it."""
        for logical in reversed(logicals):
            self._remove(stack, logical, retained=_policy(stack.template, logical) == "Retain")

    def _remove(self, stack: Stack, logical: str, *, retained: bool) -> None:
        resource = stack.resources[logical]
        try:
            if retained:
                resource.stack = resource.logical = ""
            else:
                self.account.delete(resource)
        except Refused as exc:
            stack.failures.append((logical, "DELETE_FAILED", str(exc)))
            return
        del stack.resources[logical]

    def _update(self, stack: Stack, plan: Plan) -> None:
        old_template, before = stack.template, dict(stack.resources)
        properties = {name: each.properties for name, each in before.items()}
        added = [name for name in plan.resources if name not in before]
        stack.template = plan.template
        try:
            for logical in (name for name in plan.resources if name in before):
                self._change(stack, logical, plan.resources[logical])
            self._add(stack, plan, added)
        except Refused as exc:
            stack.failures.append((str(exc.__notes__[0]), "UPDATE_FAILED", str(exc)))
            created = [name for name, each in stack.resources.items() if before.get(name) is not each]
            self._undo(stack, created)
            stack.resources = before
            for logical, each in before.items():
                each.properties = properties[logical]
            stack.template, stack.status = old_template, "UPDATE_ROLLBACK_COMPLETE"
            return
        for logical in [name for name in stack.resources if name not in plan.resources]:
            self._remove(stack, logical, retained=_policy(old_template, logical) in KEEPS)
        for logical in (
            name for name in plan.resources if before.get(name, stack.resources[name]) is not stack.resources[name]
        ):
            if _policy(plan.template, logical, "UpdateReplacePolicy") not in KEEPS:
                self.account.delete(before[logical])
        stack.status = "UPDATE_COMPLETE"

    def _change(self, stack: Stack, logical: str, new: Resource) -> None:
        """Change a resource, or create the one that replaces it; the old one goes when all others are done."""
        old = stack.resources[logical]
        try:
            if replaced := replaced_by(old.kind, old.properties, new.properties):
                _check_name(old, new, replaced)
                self.account.create(new)
                stack.resources[logical] = new
            else:
                self.account.authorize("update", new)
                self.account.check(new)
                old.properties = new.properties
        except Refused as exc:
            exc.add_note(logical)
            raise


def _check_name(old: Resource, new: Resource, replaced: list[str]) -> None:
    if has_own_name(new) and old.name == new.name:
        message = "cannot update a stack when a custom-named resource requires replacing"
        raise Refused("replacement of a named resource", f"{message}. Rename {old.name} ({', '.join(replaced)})")


def _policy(template: Mapping[str, Any], logical: str, attribute: str = "DeletionPolicy") -> str:
    return str(template["Resources"].get(logical, {}).get(attribute, "Delete"))
