"""Divides processing turns among manifests by size and source, so that a flood from one leaves turns for others."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name, canonical, folder, is_within

_NUMBERS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")  # decimal numbers, hexadecimal numbers, dates
_BITS = 4  # the sizes of one class differ by less than a factor of 16


class Share(NamedTuple):
    """Manifests that take turns with other shares; first in, first out within the share.

    Attributes:
        size_class: Increases by one with each factor of 16 in the input's bytes.
        source: The first folder of the input below an allowed prefix, with that prefix.
    """

    size_class: int = 0
    source: str = ""


NO_SHARE = Share()
"""The share of refused manifests."""


def share_of(manifest: Manifest | None, allowed_prefixes: Sequence[str]) -> Share:
    """The share of a manifest; None stands for a refused one."""
    if manifest is None:
        return NO_SHARE
    weight_bytes = sum(file.weight_bytes for file in manifest.files)
    return Share(-(-weight_bytes.bit_length() // _BITS), source_of(manifest.files[0].uri, allowed_prefixes))


def source_of(uri: str, allowed_prefixes: Sequence[str]) -> str:
    """The first folder of a file below an allowed prefix, with that prefix."""
    within = [prefix for prefix in allowed_prefixes if is_within(uri, prefix)]
    base = folder(canonical(max(within, key=len))) if within else ""
    first, _, below = canonical(uri).removeprefix(base).partition("/")
    return f"{base}{first}/" if below and base else base


def name_kind(uri: str) -> str:
    """The common part of the names from one source: the name without its numbers."""
    return _NUMBERS.sub("", base_name(uri).lower())


def in_turns(uris: Iterable[str]) -> list[str]:
    """Order objects so that names that differ only in numbers take turns with other kinds of names.

    Before an object is read, only its name indicates its source. Objects of one kind keep their order.
    """
    kinds: dict[str, list[str]] = defaultdict(list)
    for uri in uris:
        kinds[name_kind(uri)].append(uri)
    return [uri for uri in chain.from_iterable(zip_longest(*kinds.values())) if uri is not None]
