"""Tells by which rules the files of a plan got their dates. Decisions, no I/O."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from compactor.core.documents.manifest import ManifestFile
from compactor.core.inputs.dates import RULES


@dataclass(frozen=True, slots=True)
class DatedFiles:
    """The planned files that one rule dated.

    Attributes:
        rule: The rule, as one word.
        looks_for: What it looks for, in words.
        files: How many files.
        days: How many different days.
        first_date: The earliest of them.
        last_date: The latest of them.
        example: One of the files.
    """

    rule: str
    looks_for: str
    files: int
    days: int
    first_date: str
    last_date: str
    example: str


@dataclass(slots=True)
class DatingTally:
    """Counts planned files by the rule that dated them, one manifest after the other."""

    _days: dict[str, set[str]] = field(default_factory=dict)
    _files: Counter[str] = field(default_factory=Counter)
    _examples: dict[str, str] = field(default_factory=dict)

    def add(self, date: str, files: Iterable[ManifestFile]) -> None:
        """Count the files of one manifest."""
        for file in files:
            if file.dated_by is not None:
                self._days.setdefault(file.dated_by, set()).add(date)
                self._files[file.dated_by] += 1
                self._examples.setdefault(file.dated_by, file.uri)

    def rules(self) -> list[DatedFiles]:
        """The files by rule, in the order in which the rules are tried."""
        return [
            DatedFiles(rule, words, self._files[rule], len(days), min(days), max(days), self._examples[rule])
            for rule, words in RULES.items()
            if (days := self._days.get(rule))
        ]
