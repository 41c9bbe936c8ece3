"""Holds every JSON document that a command prints against the schema that is shipped for it."""

import json
from collections.abc import Iterable, Sequence
from functools import cache, wraps
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from tools.json_schemas import FOLDER, NAMES


@cache
def validator(name: str) -> Draft202012Validator:
    """Of the documents of a command, by the shipped schema."""
    return Draft202012Validator(
        json.loads((FOLDER / f"{name}.schema.json").read_text()), format_checker=Draft202012Validator.FORMAT_CHECKER
    )


def check_documents(name: str, documents: Iterable[Any]) -> None:
    """See that documents are what the schema of their command says.

    Raises:
        jsonschema.ValidationError: One of them is not.
    """
    for document in documents:
        validator(name).validate(document)


def check_printed_documents(patch: pytest.MonkeyPatch) -> None:
    """Have each call of a command with `--json`, in any test of this process, checked against the schema."""
    invoke = CliRunner.invoke

    @wraps(invoke)
    def checked(runner: CliRunner, cli: Any, args: str | Sequence[str] | None = None, **options: Any) -> Result:
        result = invoke(runner, cli, args, **options)
        if args is not None and "--json" in args and result.stdout.startswith("{"):
            name = next((each for each in args if each in NAMES), None)
            if name is not None:
                check_documents(name, _documents(result.stdout))
        return result

    patch.setattr(CliRunner, "invoke", checked)


def _documents(printed: str) -> list[Any]:
    """One document over several lines, or, with `--watch`, one a line."""
    try:
        return [json.loads(printed)]
    except ValueError:
        return [json.loads(line) for line in printed.splitlines()]
