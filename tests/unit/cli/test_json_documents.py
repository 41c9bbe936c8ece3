"""What `--json` prints is a contract: a JSON Schema for each command, which the package ships."""

import json
import re
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from compactor.cli.entry import SUMMARIES, command_of
from compactor.cli.entry import compactor as command
from compactor.cli.ui.output import print_json
from tests.support.json_documents import check_documents
from tests.support.statuses import STATUSES
from tools.json_schemas import FOLDER, NAMES, file_of


def shipped(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file_of(name).read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_schema_is_what_the_types_say(name: str) -> None:
    """A schema is valid and closed, and describes each key."""
    schema = shipped(name)
    Draft202012Validator.check_schema(schema)
    for node in [schema, *schema.get("$defs", {}).values()]:
        properties = node.get("properties", {})
        assert not properties or (node["additionalProperties"] is False and node["required"] == list(properties))
        # Where a key has no words of its own, those of the object that it refers to hold.
        assert all(each.get("description", ".").endswith(".") for each in properties.values())
        assert all("description" in each or "$ref" in each for each in properties.values())


def test_every_document_has_a_schema() -> None:
    """Each command that takes --json ships the schema of its documents, and prints it."""
    with_json = {name for name in SUMMARIES if any("--json" in option.opts for option in command_of(name).params)}
    assert with_json == set(NAMES)
    assert set(map(file_of, NAMES)) == set(FOLDER.iterdir())
    for name in with_json:
        printed = CliRunner().invoke(command, [*name.split(), "--json-schema"], env={"COMPACTOR_CONFIG": None})
        assert (printed.exit_code, json.loads(printed.stdout)) == (0, shipped(name))


def test_a_document_that_differs_is_noticed() -> None:
    """A new key, a missing one and a wrong type are faults, also of what any other test prints."""
    fine = {"asked": [], "running": []}
    check_documents("job stop", [fine])
    for wrong in ({**fine, "new": 1}, {"asked": []}, {**fine, "asked": None}, {**fine, "running": [{}]}):
        with pytest.raises(ValidationError):
            check_documents("job stop", [wrong])
    with pytest.raises(ValidationError):
        CliRunner().invoke(printer, ["stop", "--json"])


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True)
def printer(name: str, *, as_json: bool) -> None:
    """Print what no command prints."""
    click.echo(json.dumps({"name": name, "as_json": as_json}))


def test_units() -> None:
    """No key holds anything but plain units: seconds, bytes, dollars."""
    odd = re.compile(r"_(ms|millis|minutes|hours|days_ago|kb|mb|gb|megabytes)$")
    assert [(name, key) for name in NAMES for key in keys_of(shipped(name)) if odd.search(key)] == []


def keys_of(node: Any) -> Iterator[str]:
    """The keys of all documents that a schema describes."""
    if isinstance(node, list):
        for each in node:
            yield from keys_of(each)
    elif isinstance(node, dict):
        yield from node.get("properties", ())
        for each in node.values():
            yield from keys_of(each)


def test_times_are_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    """They end with a Z; the schemas refuse any other zone."""
    print_json({"as_of": STATUSES["idle"].as_of})
    assert json.loads(capsys.readouterr().out) == {"as_of": "2026-01-02T03:04:05Z"}
