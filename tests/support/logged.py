"""Keeps the log events of a test."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from compactor.telemetry.logs import LOGGER


class _Keeper(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.events.append((record.getMessage(), vars(record)["fields"]))


@contextmanager
def events_logged(name: str) -> Iterator[list[dict[str, Any]]]:
    """The fields of each event of one name that is logged in the block; they are there once the block has ended."""
    keeper, level, found = _Keeper(), LOGGER.level, list[dict[str, Any]]()
    LOGGER.addHandler(keeper)
    LOGGER.setLevel(logging.DEBUG)
    try:
        yield found
    finally:
        LOGGER.removeHandler(keeper)
        LOGGER.setLevel(level)
        found += [fields for event, fields in keeper.events if event == name]
