"""The order and the starting point of listings, equal for every store."""

from compactor.core.layout import canonical


def sort_key(name: str) -> bytes:
    """The UTF-8 bytes of a name. Python decodes names on a disk that are not UTF-8 with surrogates."""
    return name.encode("utf-8", "surrogateescape")


def start_within(prefix: str, start_after: str | None) -> str | None:
    """The name within a folder after which a listing starts.

    Args:
        prefix: The folder; ends with `/`.
        start_after: A URI inside or outside the folder.

    Returns:
        The part of `start_after` below the folder; empty to list everything; None if nothing in the folder sorts after
        `start_after`.
    """
    if start_after is None:
        return ""
    start, base = canonical(start_after), canonical(prefix)
    if start.startswith(base):
        return start.removeprefix(base)
    return "" if sort_key(start) < sort_key(base) else None
