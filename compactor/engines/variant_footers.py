"""Says in footers which columns are variants, where a writer of Parquet cannot: Arrow writes them as structs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.core.errors import SettingsError
from compactor.engines.footers import LOGICAL_TYPE, MAGIC, STRUCT, TAIL_BYTES, Element, New, changed
from compactor.engines.parquet_files import is_variant

# In Thrift's compact protocol: a union whose field 16 is a struct, whose field 1 is the byte 1.
_VARIANT_OF_SPECIFICATION_1 = bytes([STRUCT, 2 * 16, 1 << 4 | 3, 1, 0, 0])
_HALVES = {"metadata", "value"}
_FIRST_ARROW = 21
"""The first release that knows such columns; earlier ones refuse the whole footer."""


def check_arrow(version: str = pa.__version__) -> None:
    """Check that Arrow reads files with variants.

    Raises:
        SettingsError: It does not.
    """
    if int(version.partition(".")[0]) < _FIRST_ARROW:
        expected = f"expected pyarrow {_FIRST_ARROW} or later"
        raise SettingsError([f"schema.file: type variant with pyarrow {version} -> {expected}"])


@dataclass(frozen=True, slots=True)
class VariantColumns:
    """A `Change` of a footer: says of some columns that they are variants."""

    names: Collection[str]

    def __call__(self, column: Sequence[Element]) -> Mapping[int, New]:
        group, *halves = column
        if group.name not in self.names or {each.name for each in halves} != _HALVES or group.has(LOGICAL_TYPE):
            return {}
        return {0: (LOGICAL_TYPE, STRUCT, _VARIANT_OF_SPECIFICATION_1)}


@contextmanager
def parquet_writer(sink: Any, schema: pa.Schema, **options: Any) -> Iterator[pq.ParquetWriter]:
    """Open a writer of Parquet whose columns of variants are said to be such.

    Args:
        sink: Anything with `write`, such as a file.
        schema: The columns.
        options: Of `pyarrow.parquet.ParquetWriter`.

    Raises:
        OSError: The sink cannot be written.
    """
    held = _HoldsEnd(sink)
    if variants := [each.name for each in schema if is_variant(each.type)]:
        options |= _of_leaves(schema, variants)
    # Without Arrow's own copy of the schema: Parquet's own tells the types.
    with pq.ParquetWriter(pa.PythonFile(held, mode="w"), schema, store_schema=False, **options) as writer:
        yield writer
        held.is_ending = True
    sink.write(_with_variants(b"".join(held.end), variants))


def _of_leaves(schema: pa.Schema, variants: Collection[str]) -> dict[str, list[str]]:
    """Options by which no bounds of binary forms are kept, whose order means nothing, and no dictionary of values."""
    leaves = [leaf for each in schema for leaf in _leaves(each)]
    halves = {f"{name}.{half}" for name in variants for half in _HALVES}
    values = {f"{name}.value" for name in variants}
    return {
        "write_statistics": [leaf for leaf in leaves if leaf not in halves],
        "use_dictionary": [leaf for leaf in leaves if leaf not in values],
    }


def _leaves(field: pa.Field) -> list[str]:
    """The columns of Parquet that hold a column of Arrow."""
    if pa.types.is_map(field.type):
        return [f"{field.name}.key_value.key", f"{field.name}.key_value.value"]
    if pa.types.is_struct(field.type):
        return [f"{field.name}.{each.name}" for each in field.type]
    return [field.name]


def _with_variants(end: bytes, names: Collection[str]) -> bytes:
    """The end of a file, with its footer."""
    start = len(end) - TAIL_BYTES - int.from_bytes(end[-TAIL_BYTES:][:4], "little")
    footer = changed(end[start:-TAIL_BYTES], VariantColumns(names)) if names else end[start:-TAIL_BYTES]
    return end[:start] + footer + len(footer).to_bytes(4, "little") + MAGIC


@dataclass(slots=True)
class _HoldsEnd:
    """What pyarrow takes for a file. It passes on all but the end, which it holds."""

    sink: Any
    is_ending: bool = False
    end: list[bytes] = field(default_factory=list)
    closed: bool = False
    _length: int = 0

    def write(self, data: Any) -> int:
        held = bytes(data)
        if self.is_ending:
            self.end.append(held)
        else:
            self.sink.write(held)
        self._length += len(held)
        return len(held)

    def tell(self) -> int:
        return self._length

    def flush(self) -> None:
        """Nothing is held back here but the end."""

    def close(self) -> None:
        """The caller closes the sink."""
