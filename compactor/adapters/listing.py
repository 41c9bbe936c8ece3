"""The order and the starting point of listings, the same for every store."""

from compactor.core.layout import canonical


def sort_key(name: str) -> bytes:
    """The UTF-8 bytes of a name. Python decodes local names that are not UTF-8 with surrogates."""
    return name.encode("utf-8", "surrogateescape")


def start_within(prefix: str, start_after: str | None) -> str | None:
    """The part of a URI below a folder; empty to list everything; None if nothing in the folder sorts after the URI."""
    if start_after is None:
        return ""
    start, base = canonical(start_after), canonical(prefix)
    if start.startswith(base):
        return start.removeprefix(base)
    return "" if sort_key(start) < sort_key(base) else None
