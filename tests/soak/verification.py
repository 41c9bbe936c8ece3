"""What the product's own verification says, and whether what was denied is where it belongs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.soak.trouble import Expected

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of `compactor verify --deep`, beside what it had to be.

    Attributes:
        discrepancies: Those that it found, and manifests on record that are not done.
        forbidden: Denied files that are quarantined.
        closed: Manifests that may not be read and are still where they were delivered.
        shown: What is wrong, in words.
    """

    discrepancies: int
    forbidden: int
    closed: int
    shown: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        return not self.shown


def verification(found: Mapping[str, Any], expected: Expected, closed: int) -> Verification:
    """Judge what was found.

    Args:
        found: What `compactor verify --deep --json` prints.
        expected: What must have become of denied files and manifests.
        closed: How many manifests that may not be read are still there.
    """
    shown = [f"verify --deep: {each}" for each in found["discrepancies"][:_SHOWN]]
    if found["unfinished"]:
        shown.append(f"verify --deep: {found['unfinished']} manifests are not done")
    forbidden = {each["uri"] for each in found["quarantined_files"] if each["status"] == "forbidden"}
    if forbidden != expected.forbidden:
        differing = sorted(forbidden ^ expected.forbidden)[:_SHOWN]
        shown.append(f"denied files: {len(forbidden)} quarantined, expected {len(expected.forbidden)}: {differing}")
    if closed != len(expected.closed):
        shown.append(f"manifests that may not be read: {closed} left, expected {len(expected.closed)}")
    discrepancies = len(found["discrepancies"]) + int(found["unfinished"])
    return Verification(discrepancies, len(forbidden), closed, tuple(shown))
