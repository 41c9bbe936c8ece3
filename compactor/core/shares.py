"""Divides the turns of waiting manifests by their size and their source, so that a flood of some leaves others theirs."""

from collections.abc import Sequence
from typing import NamedTuple

from compactor.core.layout import canonical, folder, is_within
from compactor.core.manifest import Manifest

_BITS = 4  # the sizes of one class differ by less than a factor of 16


class Share(NamedTuple):
    """The manifests that take turns with each other, first in first out.

    Attributes:
        size_class: Grows by one with each factor of 16 in the bytes of the input.
        source: The first folder of the input below an allowed prefix, with that prefix.
    """

    size_class: int = 0
    source: str = ""


def share_of(manifest: Manifest | None, allowed_prefixes: Sequence[str]) -> Share:
    """Return the share of a manifest; None stands for one that is refused."""
    if manifest is None:
        return Share()
    weight_bytes = sum(file.weight_bytes for file in manifest.files)
    return Share(-(-weight_bytes.bit_length() // _BITS), _source(manifest.files[0].uri, allowed_prefixes))


def _source(uri: str, allowed_prefixes: Sequence[str]) -> str:
    within = [prefix for prefix in allowed_prefixes if is_within(uri, prefix)]
    base = folder(canonical(max(within, key=len))) if within else ""
    first, _, below = canonical(uri).removeprefix(base).partition("/")
    return f"{base}{first}/" if below and base else base
