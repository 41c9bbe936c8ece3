"""Writes policies for those who exist before the stack does: `python -m deploy.policies dev --account 123456789012`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from compactor.core.errors import SettingsError
from compactor.settings.settings import load_settings
from deploy import ROOT
from deploy.parameters_file import read_parameters
from deploy.policy_size import MANAGED_CHARACTERS, characters
from deploy.resolved import Document, Resolver, pseudo_parameters
from deploy.rights.check import check_statements
from deploy.rights.deployer import deployer_statements
from deploy.rights.runtime_deployer import RUNTIME_RESOURCES, runtime_statements
from deploy.stack_parameters import settings_parameters
from deploy.template_file import load_template


@click.command()
@click.argument("environment")
@click.option("--account", metavar="ID", required=True, help="The account of the stack.")
def main(environment: str, account: str) -> None:
    """Write what deploying ENVIRONMENT takes, and the policy of a key, into dist/policies/ENVIRONMENT."""
    try:
        found = policies(environment, account)
    except SettingsError as exc:
        raise click.ClickException("\n".join(exc.faults)) from exc
    folder = ROOT / "dist" / "policies" / environment
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in found.items():
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document, indent=2) + "\n")
        click.echo(str(path.relative_to(ROOT)))


def policies(environment: str, account: str, root: Path = ROOT) -> dict[str, Document]:
    """By name: `deployer-1`, ..., `runtime-ecs`, `runtime-emr`, `check`, and `key`, for a key that exists."""
    settings = load_settings(root / "config" / f"{environment}.toml", {})
    given, _ = read_parameters(root / "deploy" / "parameters" / f"{environment}.json")
    if not settings.aws.region:
        raise SettingsError(['aws.region: "" -> expected a region'])
    template = load_template()
    known = {**pseudo_parameters(settings.aws.region, account), **settings_parameters(settings), **given}
    resolver = Resolver(template, known)
    types = (each["Type"] for each in template["Resources"].values())
    statements = deployer_statements(types, key=given.get("KmsKey", ""), boundary=given.get("PermissionsBoundary", ""))
    filled = (_filled(resolver, each) for each in statements)
    numbered = {f"deployer-{number}": each for number, each in enumerate(_packed(filled), 1)}
    check = check_statements(settings, key=given.get("KmsKey", ""), input_key=given.get("InputKeyArn", ""))
    runtimes = {
        f"runtime-{name}": _policy([_filled(resolver, each) for each in runtime_statements(name)])
        for name in RUNTIME_RESOURCES
    }
    return {
        **numbered,
        **runtimes,
        "check": _policy([_filled(resolver, each) for each in check]),
        "key": key_policy(template, resolver),
    }


def key_policy(template: Mapping[str, Any], resolver: Resolver) -> Document:
    """The policy that a key of the stack has, and a key that exists needs."""
    policy: Document = resolver.value(template["Resources"]["DataKey"]["Properties"]["KeyPolicy"])
    return policy


def _filled(resolver: Resolver, statement: Document) -> Document:
    return {**statement, "Resource": [resolver.value({"Fn::Sub": each}) for each in statement["Resource"]]}


def _packed(statements: Iterable[Document]) -> Iterator[Document]:
    """As few policies as hold the statements in their order."""
    policy: Document = _policy([])
    for each in statements:
        longer = _policy([*policy["Statement"], each])
        if policy["Statement"] and characters(longer) > MANAGED_CHARACTERS:
            yield policy
            longer = _policy([each])
        policy = longer
    yield policy


def _policy(statements: list[Document]) -> Document:
    return {"Version": "2012-10-17", "Statement": statements}


if __name__ == "__main__":
    main()
