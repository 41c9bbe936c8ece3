"""Arguments of the functions: places as text or paths, and the settings of a destination."""

import os
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from compactor.core.errors import SettingsError
from compactor.core.layout import MANIFEST_ID, is_date
from compactor.settings.settings import Settings
from compactor.wiring.settings_files import settings_at, settings_place

Place = str | Path
"""A path, `file:///path`, or `s3://bucket/prefix`. A place in S3 must be a `str`: a `Path` cannot contain `//`."""


def texts(places: Place | Sequence[Place]) -> list[str]:
    """One place or several, as text."""
    return [os.fspath(places)] if isinstance(places, str | Path) else [os.fspath(each) for each in places]


def settings_of(dst: Place) -> Settings:
    """Read the settings of a destination: DST of `compact`, the place of its state, or a settings file.

    Raises:
        SettingsError: There are none, or they have faults; it lists all of them.
        AccessError: The place may not be read.
    """
    found = settings_at(settings_place(None, os.fspath(dst), os.environ), os.environ)
    if found.streams:
        raise SettingsError([f"{os.fspath(dst)}: has several streams -> expected one; the commands have --stream NAME"])
    return found


def manifest_id_fault(value: str) -> str | None:
    """The fault of a manifest id; None if it is valid."""
    if MANIFEST_ID.fullmatch(value):
        return None
    form = "1 to 200 letters, digits, '.', '_' or '-', the first a letter or digit"
    return f"{value!r} is not a manifest id; expected {form}"


def date_fault(value: str) -> str | None:
    """The fault of a day; None if it is valid."""
    return None if is_date(value) else f"{value!r} is not a calendar day; expected yyyy-mm-dd"


def day_of(value: str | date | None) -> str | None:
    """A day as text.

    Raises:
        SettingsError: It is not a calendar day.
    """
    day = value.strftime("%Y-%m-%d") if isinstance(value, date) else value
    if day is not None and (fault := date_fault(day)):
        raise SettingsError([fault])
    return day
