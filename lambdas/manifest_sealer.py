"""Seals pending parts into manifests; called once a minute."""

from collections.abc import Mapping
from typing import Any

from compactor.wiring.functions import seal_parts


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Seal what is large enough or has waited long enough."""
    return seal_parts()
