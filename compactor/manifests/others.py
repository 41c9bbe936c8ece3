"""Counts the files that other planners have."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from compactor.manifests.claiming import ClaimState


class CountsOthers(Protocol):
    """What counts them."""

    planned_before: int
    held: int
    held_until: datetime | None


def count_others(counts: CountsOthers, claimed: Mapping[str, tuple[ClaimState, datetime]]) -> list[str]:
    """Count the files that are claimed already, by claim key.

    Returns:
        The claim keys of those that may still become free.
    """
    counts.planned_before += sum(state == "taken" for state, _ in claimed.values())
    held = {key: lease_until for key, (state, lease_until) in claimed.items() if state == "held"}
    if held:
        counts.held += len(held)
        counts.held_until = max([*held.values(), *([counts.held_until] if counts.held_until else [])])
    return list(held)
