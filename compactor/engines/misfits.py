"""Counts by column the values that do not fit the type of their column, from the rescued data that was written."""

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import StagingError
from compactor.core.ports import ObjectStore
from compactor.engines.engine import Staged
from compactor.engines.parquet_files import open_parquet
from compactor.schema.schema import RESCUED_COLUMN

_BATCH_ROWS = 65_536


def misfits_by_column(store: ObjectStore, staged: Staged) -> dict[str, int]:
    """How many values of each typed column are in the rescued data. Reads their keys alone, and nothing if all fit.

    Raises:
        StagingError: A staged file cannot be read, or has another number of such values than the engine counted.
    """
    if not staged.rescued_values:
        return {}
    found = Counter[str]()
    for output in staged.outputs:
        names = {column.key: column.name for column in output.schema.columns if column.is_typed}
        keys = _rescued_keys(store, output.uri)
        found.update({names[key]: number for key, number in keys.items() if key in names})
    if found.total() != staged.rescued_values:
        where = staged.outputs[0].uri if staged.outputs else "no output"
        raise StagingError(
            f"{where}: {found.total()} values of typed columns in the rescued data, expected {staged.rescued_values}"
        )
    return dict(found)


def _rescued_keys(store: ObjectStore, uri: str) -> Counter[str]:
    """How often each key is in the rescued data of a file."""
    file, _ = open_parquet(store, uri)
    leaf = _leaf_of_keys(file)
    keys = Counter[str]()
    if leaf is None:
        return keys
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[leaf]):
            column = batch.column(RESCUED_COLUMN)
            for counted in column.flatten().flatten()[0].value_counts():
                keys[counted["values"].as_py()] += counted["counts"].as_py()
    except (pa.ArrowInvalid, OSError) as exc:
        raise StagingError(f"{uri}: {exc}; expected a whole Parquet file") from exc
    return keys


def _leaf_of_keys(file: pq.ParquetFile) -> str | None:
    """The path of the map's keys; engines name the parts of a map differently."""
    for number in range(len(file.schema)):
        leaf = file.schema.column(number)
        if leaf.max_repetition_level and leaf.path.partition(".")[0] == RESCUED_COLUMN:
            return str(leaf.path)
    return None
