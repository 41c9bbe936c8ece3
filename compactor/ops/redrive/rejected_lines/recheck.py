"""Decides whether a rejected line would be rejected again, by the rules of now. No I/O."""

from dataclasses import dataclass

from compactor.ndjson.grok import OpenDecoder
from compactor.ndjson.inspection import refusals


@dataclass(frozen=True, slots=True)
class Recheck:
    """The rules of now.

    Attributes:
        max_line_bytes: The longest line.
        has_one_parser: Whether the engine reads lines as inspection does, so that no two parsers can disagree.
        grok: What reads lines as records; None if they are JSON.
    """

    max_line_bytes: int
    has_one_parser: bool
    grok: OpenDecoder | None = None

    def fault_of(self, line: bytes, reason: str) -> str | None:
        """Return why a line would be rejected now; None if it would become a row.

        Args:
            line: The bytes of the line; of one that is too long, more than `max_line_bytes` of them.
            reason: Why it was rejected.
        """
        if len(line) > self.max_line_bytes:
            return "line_too_long"
        if reason == "parsers_disagree" and not self.has_one_parser:
            return reason
        if self.grok is not None:
            return next((fault for *_, fault in self.grok.open().decode(line + b"\n", 0).refused), None)
        return next((fault for _, fault in refusals([line])), None)
