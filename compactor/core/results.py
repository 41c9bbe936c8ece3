"""Converts a value to a JSON document, by the fields of its type, a dataclass or a record."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

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


def _form(of: Any) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, Sequence[str]]]:
    return getattr(of, "_document_form_", ((), (), {}))
