"""Commands of the documents that need an account: not run, but looked up."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import botocore.session
import click
from botocore import xform_name

from compactor.cli.entry import compactor as command
from compactor.settings.spark_conf import S3A_PACKAGES
from compactor.wiring.settings_files import job_arguments
from tests.support.document_lake import ROOT


def check_command(line: str) -> None:
    """See that a command that needs an account, and each of its options, exists.

    Raises:
        AssertionError: It does not.
    """
    words = shlex.split(line)
    if words[0] == "make":
        _check_make(words[1:])
    elif words[0] == "compactor":
        check_compactor(words[1:])
    elif words[0] == "spark-submit":
        _check_spark_submit(words[1:])
    elif words[0] == "kubectl":
        assert words[1:3] == ["apply", "--filename"], line
        assert (ROOT / words[3]).is_file(), line
    else:
        assert words[0] == "aws", f"{line}: expected make, compactor or aws"
        _check_aws(words[1], words[2], words[3:])


def _check_make(words: Sequence[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        name, is_variable, _ = word.partition("=")
        assert re.search(rf"^{name} \?=" if is_variable else rf"^{name}:", makefile, re.MULTILINE), f"make {word}"


def _check_spark_submit(words: Sequence[str]) -> None:
    """See that options of Spark, the script and its arguments are right; packages are those of the job itself."""
    script = next(number for number, word in enumerate(words) if word.endswith(".py"))
    given = dict(zip(words[:script:2], words[1:script:2], strict=True))
    assert given.keys() <= {"--master", "--packages", "--py-files"}, given
    assert given["--packages"] == S3A_PACKAGES[0]
    assert (ROOT / words[script]).is_file(), words[script]
    assert job_arguments(words[script:])["CONFIG"]


def check_compactor(words: Sequence[str]) -> None:
    """See that there is such a sub-command with such options; nothing is run.

    Raises:
        click.UsageError: There is not.
    """
    found: click.Command | None = command
    name: str | None = "compactor"
    context, rest = None, list(words)
    while isinstance(found, click.Group):
        context = found.make_context(name, rest, parent=context)
        name, found, rest = found.resolve_command(context, [*context._protected_args, *context.args])
    assert found is not None
    found.make_context(name, rest, parent=context)


def _check_aws(service: str, operation: str, words: Sequence[str]) -> None:
    operations = _operations({"s3api": "s3"}.get(service, service))  # what the command line calls otherwise
    assert operation in operations, f"aws {service} {operation}"
    members = operations[operation]
    for word in words:
        if word.startswith("--"):
            option = word.removeprefix("--").partition("=")[0]
            assert option in members | {"query", "output", "region", "cli-input-json"}, (
                f"aws {service} {operation} {word}"
            )


@cache
def _operations(service: str) -> Mapping[str, frozenset[str]]:
    """By the name of the command line, the options that AWS's own description of a service knows."""
    model = botocore.session.get_session().get_service_model(service)
    return {
        xform_name(name, "-"): frozenset(xform_name(member, "-") for member in _members(model.operation_model(name)))
        for name in model.operation_names
    }


def _members(operation: Any) -> Iterator[str]:
    return iter(operation.input_shape.members if operation.input_shape else ())
