"""The columns of a merged file: those of all its parts, each known by its field id."""

from collections.abc import Iterable

import pyarrow as pa

from compactor.engines.parquet_files import FIELD_ID


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
            elif (known.name, known.type) != (field.name, field.type):
                return None
    return pa.schema(fields.values())


def aligned(batch: pa.RecordBatch, columns: pa.Schema) -> pa.Table:
    """Rows with all of these columns, in their order."""
    own = {field.name: batch.column(at) for at, field in enumerate(batch.schema)}
    arrays = [own[field.name] if field.name in own else pa.nulls(batch.num_rows, field.type) for field in columns]
    return pa.Table.from_arrays(arrays, schema=columns)
