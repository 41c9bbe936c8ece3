"""Where input comes from: folders, files and patterns, the stream of each, and information in paths. No I/O."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from urllib.parse import unquote

from compactor.core.layout import canonical, folder, is_s3, is_text, is_within


def of_stream(stream: str, holder: str) -> str:
    """A manifest's id with its stream, as used in claims. Ids never contain a colon."""
    return f"{stream}:{holder}"


@dataclass(frozen=True)
class Routes:
    """The prefixes of all streams. No prefix belongs to two streams.

    Attributes:
        prefixes: The prefixes of each stream, by its name.
    """

    prefixes: Mapping[str, Sequence[str]]
    _streams: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, prefixes in self.prefixes.items():
            self._streams.update({folder(canonical(prefix)): name for prefix in prefixes})

    def stream_of(self, uri: str) -> str | None:
        """The stream with the longest prefix that contains an object; None if there is none."""
        path = canonical(uri)
        end = len(path)
        while (end := path.rfind("/", 0, end)) >= 0:
            above = path[: end + 1]
            if (stream := self._streams.get(above)) is not None:
                return stream if is_within(uri, above) or path == above else None
        return None


MAX_PATH_COLUMNS = 16
"""The most folders in a path that become columns."""

MAX_PATH_CHARACTERS = 4096
"""The most characters in their keys and values."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Hive's spelling of null."""


def path_columns(uri: str) -> dict[str, str]:
    """The keys and values in the folders of a file, outermost first. If a key occurs twice, the last one counts.

    Percent-encoded characters are decoded, because Hive and Spark encode those that a folder name cannot have.
    """
    found: dict[str, str] = {}
    for name in canonical(uri).split("/")[3 if is_s3(uri) else 1 : -1]:
        key, separator, value = name.partition("=")
        if not (key and separator) or value == _NULL or not is_text(name):
            continue
        key, value = _decoded(key), _decoded(value)
        if len(found) < MAX_PATH_COLUMNS:
            found[key] = value
    return found


def are_short(columns: Mapping[str, str]) -> bool:
    """Whether external keys and values are within the limits of `path_columns`."""
    texts = [*columns, *columns.values()]
    is_bounded = len(columns) <= MAX_PATH_COLUMNS and sum(map(len, texts)) <= MAX_PATH_CHARACTERS
    return is_bounded and all(map(is_text, texts))


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


_MAGIC = re.compile(r"[*?\[]")
_DEEP = "**"
HIDING = ("_", ".")
_SHOWN = 3


@dataclass(frozen=True)
class SourcePlace:
    """One SRC.

    Attributes:
        folder: The folder that contains all of its files, as `s3://bucket/prefix` or an absolute path.
        pattern: A shell pattern relative to the folder that selects files; empty for all.
        names: The names of its only files, taken literally; empty for a folder or a pattern.
    """

    folder: str
    pattern: str = ""
    names: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The place as a user would type it, one text per file."""
        below = self.names or ((self.pattern,) if self.pattern else ())
        return [folder(self.folder) + each for each in below] or [self.folder]

    def takes(self, uri: str) -> bool:
        """Whether a file below the folder is selected."""
        relative = self._relative(uri)
        if self.names:
            return relative in self.names
        return not self.pattern or self._regex.fullmatch(relative) is not None

    def reaches(self, uri: str) -> bool:
        """Whether a file or folder is selected, or anything below it may be."""
        relative = self._relative(uri).rstrip("/")
        if self.names or not self.pattern:
            return self.takes(uri)
        asked, names = self.pattern.split("/"), relative.split("/")
        if _DEEP in asked:
            return True
        return all(re.fullmatch(_segment(part), name) for part, name in zip(asked, names, strict=False))

    def is_hidden(self, uri: str) -> bool:
        """Whether a file or a parent folder has a hidden name that the pattern does not match explicitly."""
        if self.names:
            return False
        asked = self.pattern.split("/")
        if _DEEP in asked:
            asked = asked[: asked.index(_DEEP)]
        names = self._relative(uri).split("/")
        firsts = [each[:1] for each in asked] + [""] * len(names)
        return any(name.startswith(HIDING) and name[0] != first for name, first in zip(names, firsts, strict=False))

    def _relative(self, uri: str) -> str:
        return canonical(uri).removeprefix(canonical(folder(self.folder)))

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(pattern_expression(self.pattern), re.DOTALL)


def split_pattern(text: str) -> tuple[str, str] | None:
    """Split a place into the folder before its first wildcard and the pattern; None for a place without wildcards."""
    found = _MAGIC.search(text)
    if found is None:
        return None
    before, slash, _ = text[: found.start()].rpartition("/")
    return before or slash or ".", text[len(before + slash) :]


def merged(places: Sequence[SourcePlace]) -> tuple[SourcePlace, ...]:
    """Deduplicate places; files of one folder become one place."""
    names: dict[str, dict[str, None]] = {}
    for place in places:
        if place.names:
            names.setdefault(place.folder, {}).update(dict.fromkeys(place.names))
    files = [SourcePlace(place, names=tuple(found)) for place, found in names.items()]
    return tuple(dict.fromkeys([*(place for place in places if not place.names), *files]))


def in_words(places: Sequence[SourcePlace]) -> str:
    """The places in one line: the first few, and the number of others."""
    texts = [text for place in places for text in place.texts]
    more = len(texts) - _SHOWN
    return " ".join(texts[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


EXCLUDED_EXPECTED = "a file name or a whole path, optionally with wildcards, such as *.csv or /logs/old/**"


@cache
def exclusion(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """An expression for the canonical URIs of all excluded files.

    A pattern without a slash matches a file's name in any folder; any other matches a whole path and everything below
    it.

    Raises:
        re.error: A shell pattern is malformed.
    """
    parts = [pattern_expression(canonical(each)) if "/" in each else f"(?:.*/)?{_segment(each)}" for each in patterns]
    return re.compile("|".join(parts) if parts else "(?!)", re.DOTALL)


def pattern_expression(pattern: str) -> str:
    """A shell pattern as a regular expression, which also matches everything below a matching folder.

    `*` and `?` match within one name, `**` any number of folders, and `[...]` one character. What follows each but the
    last wildcard is matched where it first occurs, and no other place is tried (`(?>`), so the time to match is at most
    quadratic in the length of the path.
    """
    names = pattern.rstrip("/").split("/")
    is_deep = names[-1] == _DEEP
    runs = [""]
    for name in names[:-1] if is_deep else names:
        if name == _DEEP:
            runs.append("")
        else:
            runs[-1] += _segment(name) + "/"
    first, *middle, last = runs if len(runs) > 1 else ("", *runs)
    folders = "(?:[^/]+/)*"
    expression = first + "".join(f"(?>{folders}?{run})" for run in middle) + (folders if len(runs) > 1 else "") + last
    return expression + ".*" if is_deep else expression[:-1] + "(?:/.*)?"


def _segment(part: str) -> str:
    runs, at = [""], 0
    while at < len(part):
        sign, end = part[at], part.find("]", at + 2)
        if sign == "[" and end > 0:
            inner = part[at + 1 : end]
            negated = inner[:1] in {"!", "^"}
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner[1:] if negated else inner)
            runs[-1] += f"(?!/)[{'^' if negated else ''}{inner}]"
            at = end
        elif sign == "*":
            runs.append("")
        else:
            runs[-1] += "[^/]" if sign == "?" else re.escape(sign)
        at += 1
    first, *middle, last = runs if len(runs) > 1 else ("", *runs)
    return first + "".join(f"(?>[^/]*?{run})" for run in middle) + ("[^/]*" if len(runs) > 1 else "") + last
