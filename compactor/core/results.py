"""How a value becomes a JSON document: by the fields of its type, a dataclass or a record."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def only(kind: type[T], parts: Iterable[object]) -> tuple[T, ...]:
    """Those parts of a result that are of a type."""
    return tuple(each for each in parts if isinstance(each, kind))


def as_document(
    *, shows: Sequence[str] = (), omits: Sequence[str] = (), inlines: Mapping[str, Sequence[str]] | None = None
) -> Callable[[type[T]], type[T]]:
    """Say what the document of a class has otherwise than its fields.

    Args:
        shows: Properties that it has, too.
        omits: Fields that it has not.
        inlines: Fields in whose place it has keys of their documents: these ones, or all.
    """

    def decorated(of: type[T]) -> type[T]:
        shown, omitted, inlined = _form(of)
        form = (*shown, *shows), (*omitted, *omits), {**inlined, **(inlines or {})}
        of._document_form_ = form  # type: ignore[attr-defined]
        return of

    return decorated


@cache
def members(of: Any) -> tuple[tuple[str, Sequence[str] | None], ...]:
    """What makes up the document of a type: fields and properties; of an inlined one, the keys (all if empty)."""
    shown, omitted, inlined = _form(of)
    if is_dataclass(of):
        names = [each.name for each in fields(of) if not each.name.startswith("_")]
    else:
        names = [name for name, each in of.model_fields.items() if not each.exclude]
    return tuple((name, inlined.get(name)) for name in dict.fromkeys([*names, *shown]) if name not in omitted)


def document(value: Any, **more: Any) -> dict[str, Any]:
    """The document of a value, one level deep, with further keys before its own."""
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
