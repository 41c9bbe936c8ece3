"""Makes external text, such as file names, safe to show on a terminal, in a log, on a page and in a command.

Also builds suggested commands, and the lines with which tools read a whole output, ready to type. No I/O.
"""

import json
import re
import shlex
import unicodedata
from dataclasses import dataclass, replace

from compactor.core.layout import Layout

_CANDIDATE = re.compile(r"[^ -~]")  # all but printable ASCII
_IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
"""The code points that Unicode calls Default_Ignorable (DerivedCoreProperties, 15.0) and Python calls printable."""
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # they shape Persian and Indic words, and emoji
_IN_PRINTF = re.compile(rb"^-|[^A-Za-z0-9/._:,@+=-]")  # bytes to write as octal escapes in a printf format


def visible(text: str) -> str:
    r"""Escape each character that controls a terminal or a page, or is invisible, as in `\x1b`.

    These are control characters (line feeds, too), bidi controls and other format characters, line and paragraph
    separators, fillers and variation selectors, unassigned characters, and lone surrogates, which stand for bytes that
    are not UTF-8. All other letters, marks, symbols and spaces stay as they are. Safe text is returned unchanged.
    """
    return text if text.isascii() and text.isprintable() else _CANDIDATE.sub(_escaped, text)


def visible_json(document: str) -> str:
    r"""Escape the same characters in a JSON document with `\u`, so that it parses to the same values.

    Line feeds stay: in JSON they only separate.
    """
    return _CANDIDATE.sub(_escaped_in_json, document)


def quoted(word: str) -> str:
    """Quote one argument of a suggested command, so that a shell passes it unchanged and runs nothing.

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
        neighbours = text[max(at - 1, 0) : at] + text[at + 1 : at + 2]
        return len(neighbours) == 2 and min(neighbours) > "~" and neighbours.isprintable()  # noqa: PLR2004 - between two
    is_seen = character.isprintable() and not _IGNORABLE.match(character)
    return is_seen or unicodedata.category(character) == "Zs"


_COMMAND = re.compile(r"\bcompactor (?:redrive \w+|(?:job|data|schema|table|cost) [\w-]+|\w+)")
_WITH_IN = re.compile(r"compactor (?:trace|redrive|dismiss|(?:job )?plan|schema (?:retire|suggest))\b")


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Commands for a job, which finds its settings by itself, or for a folder compacted by a user."""

    folder: str = ""  # the output of `compact`, as commands name it; empty for a job
    again: str = ""  # the command that compacts this folder again; empty for a job
    mark: str = ""  # written on both sides of a command
    stream: str = ""  # the stream in question; empty unless the settings have several
    prefix: str = ""  # where a plan finds input; empty if there are several such places
    failed: str = ""  # the folder with the originals of dead letters

    def marked(self) -> "Suggestions":
        """The same commands between back-quotes."""
        return replace(self, mark="`")

    def call(self, command: str, *words: str, blanks: str = "") -> str:
        """A command such as `redrive files`, with words that may be external.

        `blanks` has words that the user has to replace, such as `<FILE>`: a shell refuses them as they are.
        """
        return self._marked(
            " ".join([self._with_destination(f"compactor {command}"), *map(quoted, words), blanks]).rstrip()
        )

    def at(self, text: str) -> str:
        """One of this program's texts, with the folder added to each command in it, and a plan's PREFIX filled in."""
        filled = re.sub(r"\bPREFIX\b", lambda _: quoted(self.prefix) if self.prefix else "<PREFIX>", text)
        return _COMMAND.sub(lambda found: self._marked(self._with_destination(found[0])), filled)

    def of(self, command: str) -> str:
        """A complete command with the folder added. Instead of planning a file, it compacts the folder again."""
        if self.again and command.startswith("compactor plan "):
            return self._marked(self.again)
        return self._marked(_COMMAND.sub(lambda found: self._with_destination(found[0]), command, count=1))

    def again_with(self, words: str = "") -> str:
        """The command that compacts the folder again, with extra words; empty for a job."""
        return self._marked(f"{self.again} {words}".rstrip()) if self.again else ""

    def _marked(self, command: str) -> str:
        return f"{self.mark}{command}{self.mark}"

    def _with_destination(self, command: str) -> str:
        if self.stream:
            return f"{command} --stream {self.stream}"
        if not self.folder:
            return command
        return f"{command} {'--in ' if _WITH_IN.match(command) else ''}{quoted(self.folder)}"


_EXPANDED = set('"$`\\!')  # characters that a shell interprets within double quotes
_HADOOP_PATTERN = re.compile(r"([*?\[\]{}\\])")
_DUCKDB_PATTERN = re.compile(r"([*?\[])")
_HIVE_FOLDER = re.compile(r"[^/=]+=\{date\}")


def reading_lines(layout: Layout, *, has_partitions: bool) -> tuple[str, ...]:
    """Python expressions with full function names, a Spark expression with its session, and a shell command.

    Args:
        layout: Where the output is, and what the folders of its dates are called.
        has_partitions: Whether these have folders of partitions.
    """
    place = layout.output.rstrip("/")
    is_hive = _HIVE_FOLDER.fullmatch(layout.output_folder) is not None
    folder, more = _literal(place), ', partitioning="hive"' if is_hive or has_partitions else ""
    spark = _HADOOP_PATTERN.sub(r"\\\1", re.sub("^s3://", "s3a://", place))
    options = '.option("mergeSchema", True)'
    if not is_hive and (has_partitions or "/" in layout.output_folder):
        options += '.option("recursiveFileLookup", True)'  # Spark finds no partitions below folders with other names
    elif not is_hive:
        spark += "/*"
    return (
        f"pandas.read_parquet({folder})",
        f'polars.read_parquet({folder}, missing_columns="insert")',
        f"pyarrow.dataset.dataset({folder}{more})",
        _duckdb(place),
        f"spark.read{options}.parquet({_literal(spark)})",
    )


def _duckdb(place: str) -> str:
    glob = _DUCKDB_PATTERN.sub(r"[\1]", place).replace("'", "''") + "/**/*.parquet"
    query = f"FROM read_parquet('{glob}', union_by_name = true)"
    # A query contains single quotes, so double ones read better where a shell expands nothing in them.
    word = quoted(query) if _EXPANDED & set(query) or not query.isprintable() else f'"{query}"'
    return f"duckdb -c {word}"


def _literal(text: str) -> str:
    """A text as a Python literal that a terminal shows unchanged."""
    return visible_json(json.dumps(text, ensure_ascii=False))
