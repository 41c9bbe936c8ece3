"""The columns of a merged file: those of all its parts, each known by its field id."""

from collections.abc import Iterable

import pyarrow as pa

from compactor.engines.parquet_files import FIELD_ID, is_variant, nulls


def united(schemas: Iterable[pa.Schema]) -> pa.Schema | None:
    """All columns of some files, those of the widest file first; None if a column differs between them."""
    ordered = sorted(schemas, key=len, reverse=True)
    fields, names = dict[bytes, pa.Field](), set[str]()
    for schema in ordered:
        for field in schema:
            number = (field.metadata or {}).get(FIELD_ID)
            known = fields.get(number) if number else None
            if number is None or (known is None and field.name in names):
                return None
            if known is None:
                fields[number] = field.with_nullable(True)
                names.add(field.name)
            elif known.name != field.name or not _is_same(known.type, field.type):
                return None
    return pa.schema(fields.values())


def aligned(batch: pa.RecordBatch, columns: pa.Schema) -> pa.Table:
    """Rows with all of these columns, in their order."""
    own = {field.name: batch.column(at) for at, field in enumerate(batch.schema)}
    rows = batch.num_rows
    arrays = [_as(own[each.name], each.type) if each.name in own else nulls(rows, each.type) for each in columns]
    return pa.Table.from_arrays(arrays, schema=columns)


def _is_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether columns have the same type. Engines differ in which half of a variant comes first."""
    return bool(one == other) or (is_variant(one) and is_variant(other))


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column with the halves of its variants in the order of this type."""
    if column.type == kind:
        return column
    halves = [column.field(each.name) for each in kind]
    return pa.StructArray.from_arrays(halves, fields=list(kind), mask=column.is_null())
