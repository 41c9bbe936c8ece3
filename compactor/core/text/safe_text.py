"""Makes text from outside, such as names of files, safe to show on a terminal, in a log, on a page and in a command."""

import re
import shlex
import unicodedata

_CANDIDATE = re.compile(r"[^ -~]")  # all but printable ASCII
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # they shape Persian and Indic words, and emoji
_IN_PRINTF = re.compile(rb"^-|[^A-Za-z0-9/._:,@+=-]")  # bytes to write as octal digits in the format of printf


def visible(text: str) -> str:
    r"""Write each character that acts on a terminal or a page, or cannot be seen, as an escape such as `\x1b`.

    These are control characters (line feeds, too), bidi controls and other format characters, line and paragraph
    separators, unassigned characters, and the lone surrogates that stand for bytes that are not UTF-8. All letters,
    marks, symbols and spaces stay as they are. A text that is safe already is returned unchanged.
    """
    return text if text.isprintable() else _CANDIDATE.sub(_escaped, text)


def visible_json(document: str) -> str:
    r"""Write the same characters of a JSON document as `\u` escapes, so that it parses to the same values.

    Line feeds stay: in JSON they only separate.
    """
    return _CANDIDATE.sub(_escaped_in_json, document)


def quoted(word: str) -> str:
    """Write one argument of a suggested command so that a shell passes exactly it, and runs nothing.

    An argument with characters that `visible` would escape is spelled out by printf, in octal digits (POSIX). It may
    not end in a line feed, which shells remove.
    """
    if visible(word) == word:
        return shlex.quote(word)  # guard: a suggested command is quoted
    octal = _IN_PRINTF.sub(lambda byte: b"\\%03o" % byte[0][0], word.encode("utf-8", "surrogateescape"))
    return f"\"$(printf '{octal.decode()}')\""


def _escaped(found: re.Match[str]) -> str:
    return found[0] if _is_safe(found) else found[0].encode("unicode_escape").decode()


def _escaped_in_json(found: re.Match[str]) -> str:
    if found[0] == "\n" or _is_safe(found):
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _is_safe(found: re.Match[str]) -> bool:
    character, text, at = found[0], found.string, found.start()
    if character in _JOINERS:
        beside = text[max(at - 1, 0) : at] + text[at + 1 : at + 2]
        return len(beside) == 2 and min(beside) > "~" and beside.isprintable()  # noqa: PLR2004 - between two
    return character.isprintable() or unicodedata.category(character) == "Zs"
