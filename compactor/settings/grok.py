"""The table `input.grok`: the pattern that parses text lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from compactor.settings.validation import Source

EXPECTED = 'a table with pattern = "%{NAME:key} ...", and optionally patterns (a table of definitions) and max_steps'

DEFAULT_STEPS = 50_000
_LEAST_STEPS, _MOST_STEPS = 1_000, 10_000_000
_NAME = re.compile("[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True)
class GrokPattern:
    """A pattern.

    Attributes:
        pattern: The pattern of a line.
        patterns: Definitions by name, which come before the common ones.
        max_steps: The most steps that matching a line may take.
    """

    pattern: str
    patterns: Mapping[str, str] = field(default_factory=dict)
    max_steps: int = DEFAULT_STEPS


def checked_table(table: dict[str, Any]) -> dict[str, Any]:
    """Check the form of the table; patterns are checked when they are compiled.

    Raises:
        ValueError: The message describes the expected form.
    """
    if unknown := table.keys() - {"pattern", "patterns", "max_steps"}:
        raise ValueError(f"pattern, patterns and max_steps, not {min(unknown)}")
    if not table:
        return table
    if not isinstance(table.get("pattern"), str) or not table["pattern"]:
        raise ValueError('pattern = "%{NAME:key} ..." in it')
    patterns = table.get("patterns", {})
    if not isinstance(patterns, dict) or not all(isinstance(text, str) and text for text in patterns.values()):
        raise ValueError("patterns to be a table of texts by name")
    if bad := [name for name in patterns if not _NAME.fullmatch(name)]:
        raise ValueError(f"names with letters, digits and '_' in patterns, not {bad[0]!r}")
    steps = table.get("max_steps", DEFAULT_STEPS)
    if isinstance(steps, bool) or not isinstance(steps, int) or not _LEAST_STEPS <= steps <= _MOST_STEPS:
        raise ValueError(f"max_steps to be a number from {_LEAST_STEPS:,} to {_MOST_STEPS:,}")
    return table


def pattern_of(table: Mapping[str, Any]) -> GrokPattern:
    """The pattern of a checked table."""
    return GrokPattern(table["pattern"], table.get("patterns", {}), table.get("max_steps", DEFAULT_STEPS))


def check_grok(source: Source) -> None:
    """Record a pattern without the format that uses it, and the format without a pattern."""
    given = source.values.get("input", {})
    file_format, table = given.get("format", "ndjson"), given.get("grok", {})
    if file_format == "grok" and not table:
        source.faults.append(
            f'input.format: "grok" without a pattern -> expected input.grok ({EXPECTED}), or --grok PATTERN'
        )
    elif table and file_format != "grok":
        source.fault("input.format", file_format, '"grok" (--format grok), because there is a pattern')
