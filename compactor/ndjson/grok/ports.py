"""The port of what matches lines, and the value by which tasks get it."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from compactor.core.documents.grok_rules import GrokRules
from compactor.core.errors import StagingError


class Decoded(NamedTuple):
    """The records of some lines of a block.

    Attributes:
        end: Where in the block the next line begins.
        lines: Number of the lines.
        json: A line for each of them: its record, or nothing if it is blank or refused.
        refused: The lines that are no records: the number of each among them, from 0; the places of its first byte and
            of its line feed in the block; and the reason, one of `compactor.ndjson.inspection.REASONS`.
    """

    end: int
    lines: int
    json: bytes
    refused: list[tuple[int, int, int, str]]


class LineDecoder(Protocol):
    """Matches lines. The same line has the same outcome on every machine."""

    def decode(self, block: bytes, start: int) -> Decoded:
        """Decode at least one of the lines from a byte on, and as many as fit into a record or a few million bytes.

        Raises:
            StagingError: The decoder has a fault.
        """


class OpenDecoder(Protocol):
    """How to decode lines, as a value that driver and executors exchange."""

    @property
    def rules(self) -> GrokRules:
        """What decides the outcome."""

    def open(self) -> LineDecoder:
        """The decoder of this process.

        Raises:
            StagingError: This process has none.
        """


DecoderOf = Callable[[GrokRules], OpenDecoder]
"""Makes the value for the rules of a commit."""


def no_decoder(_rules: GrokRules) -> OpenDecoder:
    """For processes that read only JSON.

    Raises:
        StagingError: Always.
    """
    raise StagingError("lines of text were not expected here")
