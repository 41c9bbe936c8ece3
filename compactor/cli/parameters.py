"""Parameters shared by several commands: DST, whose folder has the settings, manifests, numbers, days and times."""

import math
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

from compactor.cli.invocation import DESTINATION, Invocation


class FiniteRange(click.FloatRange):
    """A range of finite numbers. click accepts `nan` in any range, and `inf` in a range without an end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class HintedChoice(click.Choice):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A choice whose error says how to get what it does not offer."""

    def __init__(self, choices: Sequence[str], hint: str) -> None:
        super().__init__(choices)
        self.hint = hint

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as exc:
            raise click.BadParameter(f"{exc.message} {self.hint}", ctx, param) from exc


FORMATS = HintedChoice(
    ("ndjson", "json", "grok"),
    "To convert CSV first: duckdb -c \"COPY (FROM 'a.csv') TO 'a.ndjson' (FORMAT json)\"",
)
"""The formats of input files."""


def moment(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime | None:
    """Parse the value of an option; a time without a zone is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise click.BadParameter(f"{value!r} is not a time; expected ISO 8601, as in 2025-12-21T10:00:00Z") from exc


def calendar_day(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Check that the value of an option is a day."""
    from compactor.api.arguments import date_fault  # noqa: PLC0415 - pydantic is slow to load

    if value is not None and (fault := date_fault(value)):
        raise click.BadParameter(fault)
    return value


date_option = click.option("--date", "day", metavar="YYYY-MM-DD", callback=calendar_day, help="Only this day.")


def destination_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command without other arguments the argument `[DST]`."""
    return click.argument(DESTINATION, required=False, metavar="[DST]")(command)


def destination_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command with other arguments `--in DST`."""
    return click.option(
        "--in", DESTINATION, metavar="DST", help="Use the settings of DST, the output of an earlier `compact`."
    )(command)


def manifest_option(*, multiple: bool, about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command `--manifest ID`, for the argument `manifest_ids`, or `manifest_id` if it takes a single one."""
    name = "manifest_ids" if multiple else "manifest_id"
    return click.option("--manifest", name, metavar="ID", multiple=multiple, callback=_manifests, help=about)


def refuse_destination(invocation: Invocation, word: str, expected: str) -> None:
    """Refuse an argument that is the local DST of an earlier `compact`, unless `--in` is given.

    Raises:
        click.UsageError: It is such a DST, meant for `--in`.
    """
    from compactor.settings.compact_paths import HOME_SUFFIX, SETTINGS_NAME  # noqa: PLC0415 - pydantic is slow to load

    if invocation.destination is None and os.access(f"{word.rstrip('/')}{HOME_SUFFIX}/{SETTINGS_NAME}", os.F_OK):
        raise click.UsageError(
            f"{word} is an output of `compact` -> expected {expected}; give the output as --in {word}"
        )


def _manifests(_context: click.Context, _option: click.Parameter, value: Any) -> Any:
    from compactor.api.arguments import manifest_id_fault  # noqa: PLC0415 - pydantic is slow to load

    for each in [value] if isinstance(value, str) else value or ():
        if fault := manifest_id_fault(each):
            raise click.BadParameter(fault)
    return value
