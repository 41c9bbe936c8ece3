"""Converts lines of text to lines of JSON for a judge, and maps its verdicts back to the text."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from compactor.core.documents.changes import GrokRules
from compactor.core.documents.records import FileStatus
from compactor.core.errors import FileError, StagingError
from compactor.ndjson.line_splitting import split_lines
from compactor.ndjson.lines import Judge, Judged, LineCounts, Receiver, Refused


class Decoded(NamedTuple):
    """The records of some lines of a block.

    Attributes:
        end: Offset of the next line in the block.
        json: One line per record; empty if the line is blank or refused.
        refused: The lines that are not records: the number of each, from 0; the offsets of its first byte and of its
            line feed in the block; and the reason, one of `compactor.ndjson.inspection.REASONS`.
    """

    end: int
    lines: int
    json: bytes
    refused: list[tuple[int, int, int, str]]


class LineDecoder(Protocol):
    """Matches lines. The same line gives the same result on every machine."""

    def decode(self, block: bytes, start: int) -> Decoded:
        """Decode at least one line from an offset on, and as many as fit into a record or a few million bytes.

        Raises:
            StagingError: The decoder has a fault.
        """


class OpenDecoder(Protocol):
    """How to decode lines, as a value exchanged between driver and executors."""

    @property
    def rules(self) -> GrokRules:
        """The rules that determine the result."""

    def open(self) -> LineDecoder:
        """This process's decoder.

        Raises:
            StagingError: This process has none.
        """


DecoderOf = Callable[[GrokRules], OpenDecoder]
"""Creates the value from a commit's rules."""


def no_decoder(_rules: GrokRules) -> OpenDecoder:
    """A stub for processes that read only JSON.

    Raises:
        StagingError: Always.
    """
    raise StagingError("this process has no decoder for lines of text")


MAX_COSTLY_LINES = 1_000
"""The most lines of a file that may exceed the step limit. Each takes as long as thousands of others."""

FREE_SECONDS = 10.0
SECONDS_PER_MB = 1.0
"""The CPU time for matching a file, or the files of a task before their rest is deferred: a fixed part, plus one per
10^6 bytes, some 40 times the cost of common log patterns. Time can quarantine or defer a file but never reject a line,
so a line has the same result on every machine."""


@dataclass(slots=True)
class MatchingTime:
    """The CPU time that matching took."""

    seconds: float = 0.0
    matched_bytes: int = 0

    @property
    def excess(self) -> str:
        """How it exceeds the limit, in words; empty if it does not."""
        if self.seconds <= FREE_SECONDS + SECONDS_PER_MB * self.matched_bytes / 1e6:
            return ""
        spent = f"{self.seconds:,.0f} CPU seconds for {self.matched_bytes:,} bytes"
        return f"took {spent}; expected at most {FREE_SECONDS:g}, and {SECONDS_PER_MB:g} for each MB"


@dataclass(frozen=True, slots=True)
class GrokSplitter:
    """A `compactor.ndjson.lines.Splitter` whose judge gets records instead of lines.

    Attributes:
        of_task: Counts the time of all files of a task, and that of each is limited. None for no limit, as for a file
            that was read within it before.
    """

    decoder: OpenDecoder
    of_task: MatchingTime | None = None
    seconds: Callable[[], float] = time.thread_time

    def __call__(self, pieces: Iterable[bytes], receiver: Receiver) -> LineCounts:
        """As `compactor.ndjson.line_splitting.split_lines`.

        Raises:
            FileError: Also `too_many_rejects` if too many lines take too many steps; `too_costly`.
        """
        judging = _Judging(self.decoder.open(), receiver.judge, self.of_task, self.seconds)
        return split_lines(pieces, replace(receiver, judge=judging.judge))

    def records_of(self, lines: Iterable[bytes]) -> frozenset[bytes]:
        """The records of lines, without line feeds."""
        decoder = self.decoder.open()
        return frozenset(decoder.decode(line + b"\n", 0).json.removesuffix(b"\n") for line in lines)


class _Judging:
    """The lines of one file."""

    def __init__(
        self, decoder: LineDecoder, judge: Judge, of_task: MatchingTime | None, seconds: Callable[[], float]
    ) -> None:
        self._decoder = decoder
        self._judge = judge
        self._costly_lines = 0
        self._of_task = of_task
        self._of_file = MatchingTime()
        self._seconds = seconds

    def judge(self, block: bytes) -> Judged:
        """Classify whole lines of text."""
        lines, blank_lines, end = 0, 0, 0
        refused: list[Refused] = []
        while end < len(block):
            decoded = self._decoded(block, end)
            self._check_costs(decoded)
            judged = self._judge(decoded.json)
            blank_lines += judged.blank_lines - len(decoded.refused)
            refused += _in_block(block, end, lines, decoded, list(judged.refused))
            lines += decoded.lines
            end = decoded.end
        return Judged(lines, blank_lines, refused)

    def _decoded(self, block: bytes, start: int) -> Decoded:
        if self._of_task is None:
            return self._decoder.decode(block, start)
        began = self._seconds()
        found = self._decoder.decode(block, start)
        seconds = self._seconds() - began
        for each in (self._of_file, self._of_task):
            each.seconds += seconds
            each.matched_bytes += found.end - start
        if excess := self._of_file.excess:
            raise FileError(FileStatus.TOO_COSTLY, f"matching its lines {excess}")
        return found

    def _check_costs(self, decoded: Decoded) -> None:
        self._costly_lines += sum(reason == "match_too_costly" for *_, reason in decoded.refused)
        if self._costly_lines > MAX_COSTLY_LINES:
            raise FileError(
                FileStatus.TOO_MANY_REJECTS,
                f"more than {MAX_COSTLY_LINES:,} lines need more steps to match than input.grok.max_steps allows",
            )


def _in_block(block: bytes, start: int, first: int, decoded: Decoded, refused: list[Refused]) -> list[Refused]:
    """The refused lines in part of a block: those that the decoder refused, and those that the judge refused."""
    found = [(first + number, at, reason, block[at:end]) for number, at, end, reason in decoded.refused]
    if refused:
        lines = block[start : decoded.end].split(b"\n")
        starts = [start]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        found += [(first + number, starts[number], reason, lines[number]) for number, _, reason, _ in refused]
        found.sort()
    return found
