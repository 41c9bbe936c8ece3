"""Seals pending parts into manifests; called once a minute."""

from collections.abc import Mapping
from typing import Any

from compactor.wiring.functions import seal_parts


def handler(_event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Seal parts that are large enough or have waited long enough."""
    return seal_parts()
