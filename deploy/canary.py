"""The template of a canary: the deployed one, in which the job of one stream is that of another release.

Nothing else of the stack changes, except that the role of this job gets the rights that the other release needs
beyond those it has. What was there before is kept in the metadata, so that going back needs no checkout of it.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings
from deploy.resolved import Document, Filler
from deploy.streams import logical_id

METADATA = "Compactor"
POLICY = "canary"
"""The policy of the role with the rights that only the canary needs."""

_REFERENCE = re.compile(r"\$\{([^!}.]+)")


@dataclass(frozen=True, slots=True)
class Canary:
    """The canary of a stack.

    Attributes:
        stream: Whose job has another release than all else.
        release: That of the job.
        before: The resources that were changed for it, as they were, by name.
    """

    stream: str
    release: str
    before: Mapping[str, Document]


def resources_of(stream: Settings) -> tuple[str, str]:
    """The names of a stream's own job and of its role in the template."""
    return logical_id("Job", stream), logical_id("JobRole", stream)


def release_of(template: Mapping[str, Any]) -> str:
    """The release of all jobs and functions but the canary's; empty if the template does not tell."""
    return str(template.get("Metadata", {}).get(METADATA, {}).get("Release", ""))


def canary_of(template: Mapping[str, Any]) -> Canary | None:
    """The canary of a deployed template, if it has one."""
    found = template.get("Metadata", {}).get(METADATA, {}).get("Canary")
    return Canary(found["Stream"], found["Release"], json.loads(b64decode(found["Before"]))) if found else None


def with_release(template: Mapping[str, Any], release: str) -> Document:
    """A copy of a template that says which release all of it is, without a canary."""
    return {**template, "Metadata": {**template.get("Metadata", {}), METADATA: {"Release": release}}}


def with_canary(
    deployed: Document, old: Filler, new: Mapping[str, Document], stream: Settings, release: str
) -> Document:
    """A copy of the deployed template in which the job of a stream, and no other, is of another release.

    Args:
        deployed: The template of the stack; it has no canary, or the one of this stream.
        old: Fills in the parameters of the stack.
        new: The resources of the other release by name, with its parameters filled in.
        stream: The canary.
        release: The other release.

    Raises:
        SettingsError: The stack has no such job, or lacks what the other release needs.
    """
    base = without_canary(deployed)
    job_id, role_id = resources_of(stream)
    resources = base["Resources"]
    if job_id not in resources:
        raise SettingsError([f"streams.{stream.name}: the stack has no separate job for it -> deploy one first"])
    if role_id not in resources:
        raise SettingsError([f"streams.{stream.name}: its job has no role of its own yet -> deploy this release once"])
    changed = {job_id: new[job_id]}
    there = _statements(old.value(resources[role_id]))
    if added := [each for each in _statements(new[role_id]) if each not in there]:
        document = {"Version": "2012-10-17", "Statement": added}
        role = json.loads(json.dumps(resources[role_id]))
        role["Properties"]["Policies"].append({"PolicyName": POLICY, "PolicyDocument": document})
        changed[role_id] = role
    named = {each for each in _references([new[job_id], added]) if not each.startswith("AWS::")}
    if unknown := sorted(named - resources.keys()):
        raise SettingsError([f"{each}: not in the stack -> deploy it first" for each in unknown])
    before = {name: resources[name] for name in changed}
    # Encoded, so that neither CloudFormation nor cfn-lint finds functions and variables in it.
    kept = b64encode(json.dumps(before).encode()).decode()
    canary = {"Stream": stream.name, "Release": release, "Before": kept}
    metadata = {**base["Metadata"], METADATA: {**base["Metadata"].get(METADATA, {}), "Canary": canary}}
    return {**base, "Metadata": metadata, "Resources": {**resources, **changed}}


def without_canary(deployed: Mapping[str, Any]) -> Document:
    """A copy of the deployed template in which no job differs from the others."""
    copied: Document = json.loads(json.dumps(deployed))
    copied.setdefault("Metadata", {})
    if canary := canary_of(deployed):
        copied["Resources"].update(canary.before)
        del copied["Metadata"][METADATA]["Canary"]
    return copied


def _statements(role: Document) -> list[Document]:
    return [each for policy in role["Properties"]["Policies"] for each in policy["PolicyDocument"]["Statement"]]


def _references(node: Any) -> Iterator[str]:
    """The resources that a node names."""
    if isinstance(node, list):
        for each in node:
            yield from _references(each)
        return
    for function, given in node.items() if isinstance(node, dict) else ():
        if function == "Ref":
            yield given
        elif function == "Fn::GetAtt":
            yield given.partition(".")[0] if isinstance(given, str) else given[0]
        elif function == "Fn::Sub":
            yield from _REFERENCE.findall(given)
        else:
            yield from _references(given)
