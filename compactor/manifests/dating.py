"""Tells by which rules the files of a plan got their dates. Decisions, no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from compactor.core.manifest import Manifest
from compactor.core.named_dates import RULES


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


def dated_files(manifests: Iterable[Manifest]) -> list[DatedFiles]:
    """The files of some manifests by rule, in the order in which the rules are tried."""
    days: dict[str, set[str]] = {}
    uris: dict[str, list[str]] = {}
    for manifest in manifests:
        for file in manifest.files:
            if file.dated_by is not None:
                days.setdefault(file.dated_by, set()).add(manifest.date)
                uris.setdefault(file.dated_by, []).append(file.uri)
    return [
        DatedFiles(rule, words, len(uris[rule]), len(days[rule]), min(days[rule]), max(days[rule]), uris[rule][0])
        for rule, words in RULES.items()
        if rule in uris
    ]
