"""Resolves the template with parameters, as CloudFormation does."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from compactor.settings.settings import load_settings
from deploy.artefacts import artefact_key
from deploy.resolved import Document, Resolver, pseudo_parameters
from deploy.stack_parameters import settings_parameters
from deploy.template_file import load_template, with_modules
from tests.deployment.job_wheels import wheel_names

ROOT = Path(__file__).resolve().parents[2]
PSEUDO = pseudo_parameters("eu-central-1", "123456789012")
ARTEFACTS = ("SettingsKey", "FunctionsKey", "JobScriptKey", "JobPackageKey")


@cache
def _template() -> Document:
    return with_modules(load_template(), modules("example-artefacts-dev"))


def modules(bucket: str) -> list[str]:
    """The wheels that Glue 6.0 installs, where `make deploy` puts them."""
    return [f"s3://{bucket}/{artefact_key('dev', '', '0' * 64, name)}" for name in wheel_names()]


def template() -> Document:
    """A copy of the template that `make deploy` uploads, which a test may change."""
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
    defaults = {name: each["Default"] for name, each in _template()["Parameters"].items() if "Default" in each}
    return {**defaults, **settings_parameters(settings), **keys, **given}


def resources(document: Document, parameters: Mapping[str, str]) -> dict[str, Document]:
    """The resources that these parameters create, with their values resolved.

    Values that only AWS knows stay names: `!Ref Queue` is `Queue`, `!GetAtt Queue.Arn` is `Queue.Arn`.
    """
    resolver = Resolver(document, {**PSEUDO, **parameters})
    return {
        name: resolver.value(resource)
        for name, resource in document["Resources"].items()
        if "Condition" not in resource or resolver.holds(resource["Condition"])
    }
