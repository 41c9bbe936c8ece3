"""Parses the times that options take."""

from datetime import UTC, datetime

import click


def moment(_context: click.Context, _option: click.Parameter, value: str | None) -> datetime | None:
    """Parse the value of an option; a time without a zone is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise click.BadParameter(f"{value!r} is not a time; expected ISO 8601, as in 2025-12-21T10:00:00Z") from exc
