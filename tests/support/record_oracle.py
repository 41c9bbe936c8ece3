"""What the records of JSON documents are, found in parsed documents: an oracle that shares no code with the product."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

REFUSED = "refused"
"""In place of a record, for what counts as one reject."""


class LateError(Exception):
    """A key to carry comes after records that it belongs to."""


class _Pairs(NamedTuple):
    """An object, with repeated keys in order."""

    pairs: list[tuple[str, Any]]


def documents(text: str) -> list[Any]:
    """The values of a file, and those of its arrays, with white space or commas between them."""
    decoder, at, found = json.JSONDecoder(object_pairs_hook=_Pairs), 0, list[Any]()
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at == len(text):
            return found
        value, at = decoder.raw_decode(text, at)
        found += value if isinstance(value, list) else [value]


def records(text: str, steps: Sequence[str | None], keep: Sequence[str] = ()) -> list[Any]:
    """Each record with what is carried into it, or `REFUSED`, in the order of the file.

    Raises:
        LateError: As its name says.
    """
    found = []
    for document in documents(text):
        arrays: list[bool] = []
        of_it = list(_below(document, steps, keep, [], arrays))
        if not of_it and not any(arrays):
            of_it = [REFUSED]
        found += of_it
    return found


def _below(
    value: Any, steps: Sequence[str | None], keep: Sequence[str], carried: list[tuple[str, Any]], arrays: list[bool]
) -> Iterator[Any]:
    if not steps:
        arrays.append(True)
        yield dict([*carried, *value.pairs]) if isinstance(value, _Pairs) else REFUSED
    elif steps[0] is None and isinstance(value, list):
        arrays.append(len(steps) == 1 or not value)
        for each in value:
            if each is not None or len(steps) == 1:
                yield from _below(each, steps[1:], keep, carried, arrays)
    elif steps[0] is not None and isinstance(value, _Pairs):
        yield from _in_object(value, steps, keep, [*carried], arrays)
    else:
        arrays.append(True)
        yield REFUSED


def _in_object(
    value: _Pairs, steps: Sequence[str | None], keep: Sequence[str], carried: list[tuple[str, Any]], arrays: list[bool]
) -> Iterator[Any]:
    has_records = False
    for key, each in value.pairs:
        if key == steps[0]:
            for record in [] if each is None else _below(each, steps[1:], keep, carried, arrays):
                has_records = True
                yield record
        elif key in keep:
            if has_records:
                raise LateError(key)
            carried.append((key, each))


def plain(value: Any) -> Any:
    """A value with dictionaries in place of what keeps repeated keys."""
    if isinstance(value, _Pairs):
        return {key: plain(each) for key, each in value.pairs}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value
