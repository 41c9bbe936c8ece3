"""The manual page, from the help of the commands."""

import inspect
from collections.abc import Iterator

import click

from compactor import __version__
from compactor.cli.entry import EVERYDAY, EXAMPLES, GROUPS, SHORT, VERBS, command_of, compactor

_FILES = (
    ("compactor.toml", "A job's settings, written by `compactor init`."),
    ("DST.compactor/", "State, ledger, rejects and settings of a folder that `compactor compact` wrote."),
)
_ENVIRONMENT = (
    ("COMPACTOR_CONFIG", "The settings file, if no --config names one."),
    ("COMPACTOR_SECTION__KEY", "Overrides a setting, such as COMPACTOR_STREAM__MAX_ATTEMPTS."),
)


def man_page() -> str:
    """The page in roff, for section 1 of the manual."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH COMPACTOR 1 "" "compactor {__version__}" "User Commands"\n.ad l'
    yield from (".SH NAME", "compactor \\- " + _text(_paragraphs(compactor)[0]).rstrip("."))
    yield from (".SH SYNOPSIS", ".B compactor", "[OPTIONS] COMMAND [ARGS]...")
    yield ".SH DESCRIPTION"
    for paragraph in _paragraphs(compactor):
        yield from (".PP", _text(paragraph))
    yield ".SH OPTIONS"
    yield from _options(compactor)
    yield from (".TP", f".B {_text('-h, --help')}", "Show the help of the compactor, or of a command, and exit.")
    yield ".SH EVERYDAY COMMANDS"
    for name in EVERYDAY:
        yield from _command(name)
    for group, sentence in GROUPS.items():
        yield from (f".SH {group.upper()} COMMANDS", _text(f"{sentence}."))
        for verb in VERBS[group]:
            yield from _command(f"{group} {verb}")
    for title, entries in (("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT)):
        yield f".SH {title}"
        for name, meaning in entries:
            yield from (".TP", f".B {_text(name)}", _text(meaning))


def _command(name: str) -> Iterator[str]:
    command = command_of(name)
    with click.Context(command, info_name=f"compactor {name}") as context:
        usage = " ".join(command.collect_usage_pieces(context))
    yield f".SS compactor {_text(name)} {_text(usage)}"
    if name.rsplit(maxsplit=1)[-1] in SHORT:
        yield from (".PP", _text(f"Short: compactor {name.rsplit(maxsplit=1)[-1]}"))
    for paragraph in _paragraphs(command):
        yield from (".PP", _text(paragraph))
    yield from _options(command)
    yield from (".PP", "Examples:")
    for call, meaning in EXAMPLES[name]:
        yield from (".TP", f".B {_text(call)}", _text(meaning))


def _options(command: click.Command) -> Iterator[str]:
    with click.Context(command) as context:
        options = [each for each in command.params if isinstance(each, click.Option)]  # without --help
        records = [record for each in options if (record := each.get_help_record(context))]
    for names, meaning in records:
        yield from (".TP", f".B {_breakable(names)}", _text(meaning))


def _paragraphs(command: click.Command) -> list[str]:
    text = inspect.cleandoc(command.help or "")
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _breakable(names: str) -> str:
    """The names of an option, whose list of choices may be broken: some are longer than a line."""
    return _text(names).replace("|", "|\\:")


def _text(text: str) -> str:
    """Plain text for roff, which takes backslashes, hyphens and a dot or quote that begins a line for its own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped[:1] in {".", "'"} else escaped
