"""Holds every JSON document that a command prints against the schema that is shipped for it."""

import json
from collections.abc import Iterable, Sequence
from functools import cache, wraps
from typing import Any

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator

from compactor.cli.entry import SHORT
from tools.json_schemas import NAMES, file_of


@cache
def validator(name: str) -> Draft202012Validator:
    """Of the documents of a command, by the shipped schema."""
    return Draft202012Validator(
        json.loads(file_of(name).read_text()), format_checker=Draft202012Validator.FORMAT_CHECKER
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
            name = next(filter(None, map(_command_at, args, (*args[1:], ""))), None)
            if name is not None:
                check_documents(name, _documents(result.stdout))
        return result

    patch.setattr(CliRunner, "invoke", checked)


def _command_at(word: object, next_word: object) -> str:
    """The command with a document that a word, or this with the next one, is; empty if there is none."""
    names = (f"{word} {next_word}", f"job {word}" if word in SHORT else word)
    return next((str(each) for each in names if each in NAMES), "")


def _documents(printed: str) -> list[Any]:
    """One document over several lines, or, with `--watch`, one a line."""
    try:
        return [json.loads(printed)]
    except ValueError:
        return [json.loads(line) for line in printed.splitlines()]
