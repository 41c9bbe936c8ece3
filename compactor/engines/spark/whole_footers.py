"""Writes into the footer of a Parquet file what Spark does not: the ids of the rescued data's keys and values.

Readers that know columns by their ids take a map without ids for null. Ids are in the footer alone, so the file is
copied with another footer, which has a few bytes more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.footers import FIELD_ID, MAGIC, TAIL_BYTES, Element, New, changed, new_field_id
from compactor.schema.field_ids import RESCUED_KEY_ID, RESCUED_VALUE_ID
from compactor.schema.schema import RESCUED_COLUMN

COPY_BYTES = 8 * 1024 * 1024
"""Bytes of a file that are read and written at once."""

_ENTRIES = ("key_value", "key", "value")  # what is below a map, by Parquet's specification


@dataclass(frozen=True, slots=True)
class WholeFooterTask:
    """A staged file of Spark.

    Attributes:
        folder: For the copy; ends with `/`.
    """

    uri: str
    folder: str


def copy_with_whole_footer(store: ObjectStore, task: WholeFooterTask) -> str:
    """Copy a staged file, with all that Spark did not write.

    Returns:
        The URI of the copy, which no other run of the task writes; the file's own if it lacks nothing.

    Raises:
        StagingError: It is not a whole Parquet file.
    """
    info = store.stat(task.uri)
    size_bytes = info.size_bytes if info is not None else 0
    tail = store.read_range(task.uri, max(0, size_bytes - TAIL_BYTES), TAIL_BYTES) if info is not None else b""
    start = size_bytes - TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or start < len(MAGIC):
        raise StagingError(f"{task.uri}: no footer; expected a whole Parquet file")
    footer = store.read_range(task.uri, start, size_bytes - TAIL_BYTES - start)
    try:
        renewed = changed(footer, _with_ids)
    except (LookupError, ValueError) as exc:
        raise StagingError(f"{task.uri}: its footer cannot be read; expected a whole Parquet file") from exc
    if renewed == footer:
        return task.uri
    copy = f"{task.folder}{task.uri.rpartition('/')[2].removesuffix('.parquet')}-{uuid4().hex[:8]}.parquet"
    with store.writer(copy) as writer:
        for at in range(0, start, COPY_BYTES):
            writer.write(store.read_range(task.uri, at, min(COPY_BYTES, start - at)))
        writer.write(renewed + len(renewed).to_bytes(4, "little") + MAGIC)
    return copy


def _with_ids(column: Sequence[Element]) -> Mapping[int, New]:
    """The ids that the rescued data lack. A key may be called as the column, but then it is no group."""
    if column[0].name != RESCUED_COLUMN or not column[0].children:
        return {}
    names = tuple(each.name for each in column[1:])
    if names != _ENTRIES:
        raise ValueError(f"the rescued data hold {names}")
    if any(each.has(FIELD_ID) for each in column[2:]):
        return {}
    return {2: new_field_id(RESCUED_KEY_ID), 3: new_field_id(RESCUED_VALUE_ID)}
