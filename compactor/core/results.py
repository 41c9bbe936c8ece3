"""Converts a value to a JSON document, by the fields of its type, a dataclass or a record; and prints results."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Any, TypeGuard, TypeVar

from compactor.core.text.safe_text import visible

T = TypeVar("T")


def only(kind: type[T], parts: Iterable[object]) -> tuple[T, ...]:
    """The parts of a result that have a given type."""
    return tuple(each for each in parts if isinstance(each, kind))


def as_document(
    *, shows: Sequence[str] = (), omits: Sequence[str] = (), inlines: Mapping[str, Sequence[str]] | None = None
) -> Callable[[type[T]], type[T]]:
    """Define how the document of a class differs from its fields.

    Args:
        shows: Properties to include.
        omits: Fields to leave out.
        inlines: Fields to replace with keys of their own documents: the listed ones, or all.
    """

    def decorated(of: type[T]) -> type[T]:
        shown, omitted, inlined = _form(of)
        form = (*shown, *shows), (*omitted, *omits), {**inlined, **(inlines or {})}
        of._document_form_ = form  # type: ignore[attr-defined]
        return of

    return decorated


@cache
def members(of: Any) -> tuple[tuple[str, Sequence[str] | None], ...]:
    """The members of a type's document: fields and properties; for an inlined field, its keys (all if empty)."""
    shown, omitted, inlined = _form(of)
    if is_dataclass(of):
        names = [each.name for each in fields(of) if not each.name.startswith("_")]
    else:
        names = [name for name, each in of.model_fields.items() if not each.exclude]
    return tuple((name, inlined.get(name)) for name in dict.fromkeys([*names, *shown]) if name not in omitted)


def document(value: Any, **more: Any) -> dict[str, Any]:
    """The document of a value, one level deep, with extra keys first."""
    kind: Any = type(value)
    for name, inlined in members(kind):
        found = getattr(value, name)
        if inlined is None:
            more[name] = found
        else:
            more |= {key: getattr(found, key) for key in inlined} if inlined else document(found)
    return more


PRINTED_ITEMS = 3  # of each list


def printed(*names: str) -> Callable[[type[T]], type[T]]:
    """Have `print` show only these attributes of a result, a line each, and `repr` show them in one line.

    Args:
        names: Such as `rows`, or `run.committed`.
    """

    def found(self: object) -> list[tuple[str, object]]:
        return [(name.rpartition(".")[2], attrgetter(name)(self)) for name in names]

    def in_lines(self: object) -> str:
        width = max(len(name) for name, _ in found(self)) + 2
        lines = ((name, _lines(value)) for name, value in found(self) if value is not None and value != "")
        return "\n".join(f"{name:{width}}" + f"\n{'':{width}}".join(those) for name, those in lines)

    def in_one_line(self: object) -> str:
        brief = (f"{name}={f'<{len(value)}>' if _is_many(value) else repr(value)}" for name, value in found(self))
        return f"{type(self).__name__}({', '.join(brief)})"

    def decorated(of: type[T]) -> type[T]:
        vars_of: Any = of
        vars_of.__str__, vars_of.__repr__ = in_lines, in_one_line
        return of

    return decorated


def _is_many(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, Collection) and not isinstance(value, str)


def _lines(value: object) -> list[str]:
    """The lines that print a value: of many, the first ones and how many more there are."""
    if not _is_many(value):
        return [f"{value:,}" if type(value) is int else visible(str(value))]
    texts = (f"{key}: {each}" for key, each in value.items()) if isinstance(value, Mapping) else map(str, value)
    first, more = map(visible, islice(texts, PRINTED_ITEMS)), len(value) - PRINTED_ITEMS
    return [*first, *([f"and {more:,} more"] if more > 0 else [])] or ["none"]


def _form(of: Any) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Sequence[str]]]:
    return getattr(of, "_document_form_", ((), (), {}))
