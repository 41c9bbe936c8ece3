"""The context of every command: the place of its settings, and the format of its log."""

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

import click

from compactor.cli.ui.failures import ExitCode, exit_code_of
from compactor.cli.ui.signals import interruptible
from compactor.cli.ui.terminal import write_out
from compactor.core.layout import MANIFEST_ID
from compactor.telemetry.logs import configure_logs

if TYPE_CHECKING:
    from compactor.settings.settings import Settings
    from compactor.telemetry.log_events import Level

LogFormat = Literal["auto", "text", "json"]
CONFIG_HELP = (
    "Read the settings (TOML) from this file or s3://bucket/key. Default: the settings of DST, else "
    "$COMPACTOR_CONFIG, else ./compactor.toml."
)

DESTINATION = "settings_of"
"""The parameter name of DST or `--in`; no command uses it for anything else."""

STREAM = "stream_named"
"""The parameter name of `--stream`."""

_GIVEN_BY = {"--in": "a destination is given by --in DST", "--manifest": "a manifest is given by --manifest ID"}


def given_by(command: click.Command, *options: str) -> str:
    """The end of a message on a word that a command does not take: which of some options, or of all, may be meant."""
    declared = {name for each in command.params for name in each.opts}
    return "".join(f"; {_GIVEN_BY[each]}" for each in options or _GIVEN_BY if each in declared)


class _CurrentStderr:
    """Writes to the current `sys.stderr`: a progress display replaces it for a while."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


@dataclass(frozen=True, slots=True)
class Invocation:
    """The place of the settings, and the log format."""

    config: str | None = None
    destination: str | None = None  # DST, the folder that `compact` wrote
    stream: str | None = None  # the selected stream, for settings with [[streams]]
    log_format: LogFormat = "auto"  # warnings as text, but JSON lines for a job without a terminal

    def start_log(self, *, of_job: bool = False) -> None:
        """Send the log to stderr: all of it for a job or a given format; else warnings."""
        is_auto = self.log_format == "auto"
        as_json = of_job if is_auto else self.log_format == "json"
        level: Level = "warning" if is_auto and not of_job else "info"
        configure_logs(as_json=as_json, level=level, stream=cast("TextIO", _CurrentStderr()))

    @property
    def place(self) -> str:
        """The place of the settings; empty if only variables set them, or if there are none.

        Raises:
            SettingsError: DST has none, or another user may have written them.
        """
        from compactor.wiring.settings_files import NoSettingsError  # noqa: PLC0415 - pydantic is slow to load

        try:
            return self._place()
        except NoSettingsError:
            return ""

    @property
    def has_settings(self) -> bool:
        """Whether there are settings, in a file or in variables."""
        return bool(self.place) or any(name.startswith("COMPACTOR_") and "__" in name for name in os.environ)

    def _place(self) -> str:
        from compactor.wiring.settings_files import settings_place  # noqa: PLC0415 - pydantic is slow to load

        context = click.get_current_context(silent=True)
        hint = (
            given_by(context.command, "--manifest") if context and MANIFEST_ID.fullmatch(self.destination or "") else ""
        )
        takes_in = context is not None and any("--in" in each.opts for each in context.command.params)
        dst = "--in DST" if takes_in else "DST"
        return settings_place(self.config, self.destination, os.environ, hint=hint, dst=dst)

    def at(self, destination: str) -> "Invocation":
        """The same call with a destination's settings.

        Raises:
            click.UsageError: A settings file is given as well.
        """
        if self.config is not None:
            raise click.UsageError(f"give the destination {destination} or --config, not both")
        return replace(self, destination=destination)

    def settings(self, **patience: Any) -> "Settings":
        """Read the settings of the selected stream. `patience` is how long to wait for S3, as for `settings_at`.

        Raises:
            SettingsError: There are none, they have faults (all listed), or there are several streams.
        """
        return self.deployment(**patience).require_one_stream()

    def deployment(self, **patience: Any) -> "Settings":
        """Read the settings as `settings` does, but for all streams unless one is selected."""
        from compactor.settings.settings import load_settings  # noqa: PLC0415 - pydantic is slow to load
        from compactor.wiring.settings_files import settings_at  # noqa: PLC0415

        place = self._place()
        found = settings_at(place, os.environ, **patience) if place else load_settings(None, os.environ)
        return found if self.stream is None else found.of_stream(self.stream)


def body(function: Callable[..., ExitCode | None]) -> Callable[..., None]:
    """Make a function the body of a command.

    The function takes the invocation and its own options, and returns the exit code, or None for success. Its errors
    become exit codes. `--config` works before and after the command's name. DST, as argument or for `--in` (see
    `compactor.cli.parameters`), selects the settings.
    """

    @click.option("--config", metavar="FILE", help=CONFIG_HELP)
    @click.pass_context
    @functools.wraps(function)
    def run(context: click.Context, /, config: str | None, **options: Any) -> None:
        invocation = context.ensure_object(Invocation)
        if config is not None:
            invocation = replace(invocation, config=config)
        invocation = replace(invocation, stream=options.pop(STREAM, None))
        if (destination := options.pop(DESTINATION, None)) is not None:
            invocation = invocation.at(destination)
        with interruptible():
            code = exit_code_of(lambda: function(invocation, **options) or ExitCode.DONE)
        context.exit(code)

    return cast("Callable[..., None]", run)


def stream_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--stream`; put it above `body`, which takes it."""
    about = "Use this stream, if the settings have several ([[streams]])."
    return click.option("--stream", STREAM, metavar="NAME", help=about)(command)


def shard_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--shard`, for the argument `shard`."""
    about = "Use shard K of N, such as 2/4, if several jobs share the manifests."
    return click.option("--shard", metavar="K/N", help=about)(command)


class JsonOption(click.Option):
    """The option `--json`, which knows its output types.

    Attributes:
        prints: The result types, one of which is printed.
        has_streams: Whether the first type may be printed once per stream.
    """

    def __init__(self, *declared: Any, prints: tuple[type, ...], has_streams: bool, **options: Any) -> None:
        super().__init__(*declared, **options)
        self.prints, self.has_streams = prints, has_streams


def json_option(*prints: type, has_streams: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--json`, which prints one of these types, and `--json-schema`, which prints their schema."""
    as_json = click.option(
        "--json",
        "as_json",
        is_flag=True,
        cls=JsonOption,
        prints=prints,
        has_streams=has_streams,
        help="Print only one JSON document.",
    )
    schema = click.option(
        "--json-schema",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_schema,
        help="Print the JSON Schema of --json's output, and exit.",
    )
    return lambda command: as_json(schema(command))


def reporting(*prints: type, has_streams: bool = False) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a function the body of a command that prints one of these types, once or per stream."""
    with_json = json_option(*prints, has_streams=has_streams)
    return lambda function: with_json(stream_option(body(function)))


def schema_file(command: click.Command) -> str:
    """The name of the shipped schema of a command's documents."""
    return f"{str(command.name).replace(' ', '-')}.schema.json"


def _print_schema(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        file = files("compactor.cli") / "schemas" / schema_file(context.command)
        write_out(file.read_text(), nl=False)
        context.exit()
