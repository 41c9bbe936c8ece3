"""The values of texts in nested types.

A list takes an array, a struct or map takes an object; either may also be JSON text in a string, as only a value's text
counts. A part that does not fit is null, and so is a part that is null or missing. If anything of the text is not in
the value, the whole text is rescued, too: for instance for a key that a struct lacks, or that an object has twice.
"""

import orjson

from compactor.ndjson.inspection import with_numbers_beyond_double
from compactor.ndjson.rawjson import Source, elements, fields, is_container
from compactor.schema.column_types import MAX_SLOTS, ColumnType, Value, value_of

_Fitted = tuple[Value | None, bool]


def fitted(text: str, column_type: ColumnType) -> _Fitted:
    """A text's value in any type, None if there is none; and whether the value has all of the text."""
    if column_type.parts and text.count("{") * column_type.field_ids > MAX_SLOTS:
        return None, False
    return _fitted(text, column_type)


def _fitted(text: str, column_type: ColumnType) -> _Fitted:
    if column_type.parts:
        return _nested(text, column_type) if _is_nested(text) else (None, False)
    value = value_of(text, column_type)
    return value, value is not None


def _is_nested(text: str) -> bool:
    """Whether a text is a JSON array or object, without a line feed, as in a line of NDJSON."""
    if text[:1] not in ("[", "{") or "\n" in text:
        return False
    line = f"[{text}]".encode()  # as deep as a value in a line
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        if with_numbers_beyond_double(line, exc) is None:
            return False
    return is_container(text)


def _nested(text: str, column_type: ColumnType) -> _Fitted:
    if (text[0] == "[") != (column_type.kind == "list"):
        return None, False
    if column_type.kind == "list":
        found = [_part(source, each, column_type.parts[0]) for source, each in elements(text)]
        return tuple(value for value, _ in found), all(is_whole for _, is_whole in found)
    parts = dict(zip(column_type.names, column_type.parts, strict=True)) if column_type.names else None
    values, is_all = dict[str, Value | None](), True
    for key, source, each in fields(text):
        part = parts.get(key) if parts is not None else column_type.parts[0]
        is_whole = key not in values and (part is not None or source == "null")
        if is_whole and part is not None:  # of a repeated key, the first value counts
            values[key], is_whole = _part(source, each, part)
        is_all &= is_whole
    return tuple(values.items()) if parts is None else tuple(map(values.get, parts)), is_all


def _part(source: Source, text: str, part: ColumnType) -> _Fitted:
    if source == "null":
        return None, True
    # The text of an array or object in a line is valid.
    return _nested(text, part) if part.parts and source == "nested" else _fitted(text, part)
