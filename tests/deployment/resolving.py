"""Resolves the template with parameters, as CloudFormation does."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compactor.settings.settings import load_settings
from deploy.artefacts import artefact_key
from deploy.locks import job_modules
from deploy.stack_parameters import settings_parameters
from deploy.template_file import load_template

ROOT = Path(__file__).resolve().parents[2]
PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::AccountId": "123456789012",
    "AWS::NoValue": None,
}
ARTEFACTS = ("SettingsKey", "FunctionsKey", "JobScriptKey", "JobPackageKey")
_VARIABLE = re.compile(r"\$\{(!?)([^}]+)\}")

Document = dict[str, Any]


@cache
def _template() -> Document:
    return load_template()


def template() -> Document:
    """A copy of the template that a test may change."""
    copied: Document = _copy(_template())
    return copied


def _copy(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copy(value) for key, value in node.items()}
    return [_copy(each) for each in node] if isinstance(node, list) else node


def parameters_of(environment: str) -> dict[str, str]:
    """The parameters that `make deploy` passes for an environment."""
    given: dict[str, str] = json.loads((ROOT / "deploy" / "parameters" / f"{environment}.json").read_text())
    settings = load_settings(ROOT / "config" / f"{environment}.toml", {})
    keys = {name: artefact_key(environment, name, name * 4, "x") for name in ARTEFACTS}
    return {**settings_parameters(settings), **keys, "JobModules": job_modules(), **given}


def resources(document: Document, parameters: Mapping[str, str]) -> dict[str, Document]:
    """The resources that these parameters create, with their values resolved.

    Values that only AWS knows stay names: `!Ref Queue` is `Queue`, `!GetAtt Queue.Arn` is `Queue.Arn`.
    """
    resolver = _Resolver(document, parameters)
    return {
        name: resolver.value(resource)
        for name, resource in document["Resources"].items()
        if "Condition" not in resource or resolver.holds(resource["Condition"])
    }


class _Resolver:
    def __init__(self, document: Document, parameters: Mapping[str, str]) -> None:
        self._conditions = document["Conditions"]
        self._known = {**PSEUDO, **parameters}

    def holds(self, name: str) -> bool:
        return bool(self._condition(self._conditions[name]))

    def _condition(self, node: Document) -> bool:
        [(function, arguments)] = node.items()
        if function == "Fn::Equals":
            one, other = (self.value(each) for each in arguments)
            return str(one) == str(other)
        if function == "Fn::Not":
            return not self._condition(arguments[0])
        if function == "Fn::And":
            return all(map(self._condition, arguments))
        assert function == "Condition", function
        return self.holds(arguments)

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [value for value in map(self.value, node) if value is not None]
        if not isinstance(node, dict):
            return node
        function, arguments = next(iter(node.items()), ("", None))
        if function == "Ref" or function.startswith("Fn::"):
            return self._called(function, arguments)
        filled = {key: self.value(each) for key, each in node.items()}
        return {key: value for key, value in filled.items() if value is not None}

    def _called(self, function: str, arguments: Any) -> Any:
        if function == "Ref":
            return self._known.get(arguments, arguments)
        if function == "Fn::GetAtt":
            return arguments if isinstance(arguments, str) else ".".join(arguments)
        if function == "Fn::Sub":
            return _VARIABLE.sub(self._substituted, arguments)
        assert function == "Fn::If", function
        condition, yes, no = arguments
        return self.value(yes if self.holds(condition) else no)

    def _substituted(self, match: re.Match[str]) -> str:
        is_literal, name = match.groups()
        return f"${{{name}}}" if is_literal else str(self._known.get(name, name))
