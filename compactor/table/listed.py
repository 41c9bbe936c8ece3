"""The table of a stream as the commands of operators know it. Its catalog is connected to when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass

from compactor.core.text.formatting import count, shown_seconds
from compactor.table.catalog import TableCatalog


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTable:
    """The table that lists the output of a stream.

    Attributes:
        name: Its name with the namespace: `lake.events`.
        catalog: Connects to its catalog. Errors are of the compactor's own, also if a package is missing.
        late_seconds: How long a placed manifest may wait for the table before a person should look.
        shards: How many jobs commit to it.
        upkeep: The tasks of its upkeep that jobs do: maintain, merge.
    """

    name: str
    catalog: Callable[[], TableCatalog]
    late_seconds: float
    shards: int = 1
    upkeep: tuple[str, ...] = ()


def waiting_words(waiting: int, seconds: float | None) -> str:
    """How many manifests wait for the table, in the words that every command uses.

    Args:
        waiting: Placed manifests that the table has not taken.
        seconds: How long the first of them has waited; None if that is not known.
    """
    if not waiting:
        return "no manifest waits for the table"
    since = "" if seconds is None else f", the first for {shown_seconds(seconds)}"
    return f"{count(waiting, 'manifest')} {'waits' if waiting == 1 else 'wait'} for the table{since}"


def held_words(reason: str) -> str:
    """Why a manifest that is held back is not in the table, in the words that every command uses."""
    return f"held back, because its catalog refuses it: {reason}"


def held_count_words(held: int) -> str:
    """How many manifests are held back from the table, in the words that every command uses."""
    are, them = ("is", "it") if held == 1 else ("are", "them")
    return f"{count(held, 'manifest')} {are} held back, because the catalog refuses {them}"
