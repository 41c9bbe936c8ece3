"""HTML and SVG in which nothing can be left unescaped: text becomes markup by `element` alone. No I/O."""

import html
from collections.abc import Iterable

_VOID = frozenset({"meta", "link", "br"})
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


class Markup(str):
    """Text that may stand in a page as it is."""

    __slots__ = ()


Child = str | Markup | None


def visible(text: str) -> str:
    """A text with an escape for every character that cannot be seen, or that would turn the text around it."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == _NO_BREAK_SPACE else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def escaped(text: str) -> Markup:
    """Any text, as text of a page or as the value of an attribute."""
    return Markup(html.escape(visible(text)))


def joined(parts: Iterable[Child]) -> Markup:
    """Several pieces as one: markup as it is, any other text escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escaped(part) for part in parts if part is not None))


def element(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """An element.

    Args:
        name: Of the element.
        children: What is in it; text is escaped.
        attributes: By name, with `_` for `-` and one more `_` behind a word of Python's. None and False leave one out.
    """
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return f' {name}="{escaped(text)}"'
