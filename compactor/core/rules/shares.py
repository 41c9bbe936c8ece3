"""Divides the turns of waiting manifests by size and source, so that a flood of some leaves the others theirs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name, canonical, folder, is_within

_NUMBERS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")  # decimal ones, hexadecimal ones, dates
_BITS = 4  # the sizes of one class differ by less than a factor of 16


class Share(NamedTuple):
    """The manifests that take turns with each other, first in first out.

    Attributes:
        size_class: Grows by one with each factor of 16 in the bytes of the input.
        source: The first folder of the input below an allowed prefix, with that prefix.
    """

    size_class: int = 0
    source: str = ""


NO_SHARE = Share()
"""The share of manifests that are refused."""


def share_of(manifest: Manifest | None, allowed_prefixes: Sequence[str]) -> Share:
    """Return the share of a manifest; None stands for one that is refused."""
    if manifest is None:
        return NO_SHARE
    weight_bytes = sum(file.weight_bytes for file in manifest.files)
    return Share(-(-weight_bytes.bit_length() // _BITS), _source(manifest.files[0].uri, allowed_prefixes))


def _source(uri: str, allowed_prefixes: Sequence[str]) -> str:
    within = [prefix for prefix in allowed_prefixes if is_within(uri, prefix)]
    base = folder(canonical(max(within, key=len))) if within else ""
    first, _, below = canonical(uri).removeprefix(base).partition("/")
    return f"{base}{first}/" if below and base else base


def name_kind(uri: str) -> str:
    """What the names of objects of one source have in common: the name without its numbers."""
    return _NUMBERS.sub("", base_name(uri).lower())


def in_turns(uris: Iterable[str]) -> list[str]:
    """Order objects so that names of the same kind, which differ in numbers alone, take turns with other kinds.

    Objects that are not read yet have no other sign of their source. Those of one kind keep their order.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        kinds[name_kind(uri)].append(uri)
    return [uri for uri in chain.from_iterable(zip_longest(*kinds.values())) if uri is not None]
