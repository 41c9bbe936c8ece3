"""The order and the starting point of listings, the same for every store."""

from compactor.core.layout import canonical


def sort_key(name: str) -> bytes:
    """The UTF-8 bytes of a name; also of one from a disk that is no UTF-8, which Python spells with surrogates."""
    return name.encode("utf-8", "surrogateescape")


def start_within(prefix: str, start_after: str | None) -> str | None:
    """Where a listing of a folder begins.

    Args:
        prefix: The folder, ending with `/`.
        start_after: A URI, in the folder or not.

    Returns:
        The part of `start_after` behind the folder; an empty text to list everything; None if nothing of the folder
        sorts behind `start_after`.
    """
    if start_after is None:
        return ""
    start, base = canonical(start_after), canonical(prefix)
    if start.startswith(base):
        return start.removeprefix(base)
    return "" if sort_key(start) < sort_key(base) else None
