"""`compactor job init`: writes a first settings file."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from compactor.cli.invocation import Invocation, body
from compactor.cli.ui.failures import is_terminal
from compactor.cli.ui.terminal import echo
from compactor.core.errors import AccessError
from compactor.core.layout import is_s3
from compactor.core.text.safe_text import quoted
from compactor.settings.places import EXPECTED
from compactor.settings.settings import parse_settings, parse_toml
from compactor.settings.template import Answers, draft, read_answer, read_answers

_DEFAULT_FILE = "compactor.toml"
_QUESTIONS = {
    "input": "Where is the input?",
    "output": "Where should the Parquet files go?",
    "state": "Where should manifests and state be kept?",
}


@click.command("job init")
@click.argument("file", required=False)
@click.option("--input", "inputs", multiple=True, metavar="PLACE", help="Read input from this place; repeatable.")
@click.option("--output", metavar="PLACE", help="Write the Parquet files to this place.")
@click.option("--state", metavar="PLACE", help="Keep manifests and state in this place.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@body
def init(
    invocation: Invocation,
    *,
    file: str | None,
    inputs: tuple[str, ...],
    output: str | None,
    state: str | None,
    force: bool,
) -> None:
    """Write a commented settings file: FILE, or compactor.toml.

    On a terminal, asks for three places, unless --input, --output and --state give them. A place is s3://bucket/prefix
    or a folder. Creates only the settings file.
    """
    name = file or invocation.config or _DEFAULT_FILE
    if is_s3(name):
        raise click.UsageError(f"{name}: expected a local file; copy it to S3 once it is right")
    path = Path(name)
    if path.exists() and not force:
        raise click.UsageError(f"{name} already exists; use --force to overwrite it, or choose a different file")
    asks = not (inputs or output or state) and is_terminal()
    answers = _ask() if asks else _given(inputs, output or "", state or "")
    text = draft(answers)
    parse_settings(parse_toml(text.encode(), name))  # any answers give settings that load
    _write(path, text, over=force)
    _show(name, answers)


def _given(inputs: tuple[str, ...], output: str, state: str) -> Answers:
    """Read the answers from the options.

    Raises:
        click.UsageError: Options are missing or invalid; it lists all of them.
    """
    flags = {"--input": inputs, "--output": output, "--state": state}
    missing = [f"{flag} PLACE" for flag, value in flags.items() if not value]
    if missing:
        raise click.UsageError(f"also expected {', '.join(missing)}; a place is {EXPECTED}")
    answers, faults = read_answers(inputs, output, state)
    if answers is None:
        raise click.UsageError("; ".join(faults))
    return answers


def _ask() -> Answers:
    """Ask the user on the terminal. Repeats the question after an invalid answer."""
    found: dict[str, str] = {}
    echo(f"A place is {EXPECTED}.", err=True)
    for name, question in _QUESTIONS.items():
        found[name] = _asked(name, question, found)
    return Answers((found["input"],), found["output"], found["state"])


def _asked(name: str, question: str, others: Mapping[str, str]) -> str:
    def read(text: str) -> str:
        try:
            return read_answer(name, text, others)
        except ValueError as exc:
            raise click.UsageError(f"{text!r} is invalid: expected {exc}") from exc

    place: str = click.prompt(question, prompt_suffix=" ", value_proc=read, err=True)
    return place


def _write(path: Path, text: str, *, over: bool) -> None:
    """Write a complete file or none. Without `over` it must not exist."""
    try:
        if not over:
            with path.open("x") as file:
                file.write(text)
            return
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(path)
    except OSError as exc:
        raise AccessError(f"{path}: cannot be written ({exc.strerror}); expected a writable folder") from exc


def _show(name: str, answers: Answers) -> None:
    command = f"compactor --config {quoted(name)}"
    echo(f"Wrote {name}. Next:")
    if answers.is_on_s3:
        echo('  set builder.claims to a DynamoDB table, which plan needs ("@journal" is enough for back-fills)')
    for rest in ("doctor", *(f"plan {quoted(each)}" for each in answers.inputs), "run --once"):
        echo(f"  {command} {rest}")
