"""The places and settings of `compactor compact`, which converts one folder to another. No I/O."""

import glob
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compactor.core import layout
from compactor.core.errors import SettingsError
from compactor.core.inputs.source_places import SourcePlace, merged, pattern_expression, split_pattern
from compactor.core.text.safe_text import quoted
from compactor.settings import places
from compactor.settings.sections import Paths
from compactor.settings.types import JOURNAL_CLAIMS

HOME_SUFFIX = ".compactor"
SETTINGS_NAME = "compactor.toml"
SCHEMA_NAME = "schema.toml"

LEASE_SECONDS = 20.0
"""How long a dead planner's files stay claimed. The next call waits for that; a late planner does no harm."""

Document = dict[str, dict[str, Any]]

_LASTING: dict[str, tuple[str, str, Any, bool]] = {
    "--format": ("input", "format", "ndjson", True),
    "--grok": ("input", "grok", {}, True),
    "--records": ("input", "records", "", True),
    "--keep": ("input", "keep", [], True),
    "--hive-keys": ("input", "hive_keys", False, True),
    "--names": ("schema", "names", "safe", False),
    # Claims record which files were taken. With an empty claims table, each line would become a second row.
    "--claims": ("builder", "claims", "", False),
}
"""Options for reading all input of a destination: section, key, default, and whether edits are allowed.

The columns of the destination decide about `--schema` and `--types`. Any call may change the others.
"""

_MOST_SOURCES = 3
"""How many sources a suggested command names. Settings keep one more, which says that there are too many."""

_WIDER_FORMAT = ("format", "ndjson", "json")
"""The only one of these that a call may change: `json` reads everything that `ndjson` reads, in the same way."""


@dataclass(frozen=True, slots=True)
class CompactPaths:
    """The places of a call; `home` contains state, manifests and settings.

    Attributes:
        source: SRC, all sources in one text.
        output: DST, which contains only rows.
        home: The same.
        places: The sources; if empty, `source` is one folder.
    """

    source: str
    output: str
    home: str
    places: tuple[SourcePlace, ...] = ()

    @property
    def sources(self) -> tuple[SourcePlace, ...]:
        return self.places or (SourcePlace(self.source),)

    @property
    def prefixes(self) -> list[str]:
        """Where input may be: the folders of all sources. A file next to DST is its own prefix."""
        found: list[str] = []
        for place in self.sources:
            overlaps = any(places.overlap(place.folder, each) for each in (self.output, self.home))
            found += place.texts if place.names and overlaps else [place.folder]
        return list(dict.fromkeys(found))

    @property
    def settings_file(self) -> str:
        return f"{layout.folder(self.home)}{SETTINGS_NAME}"

    @property
    def handle(self) -> str:
        """The user's name for this folder in other commands: DST, or the place of --state if it is elsewhere."""
        return self.output if self.home == f"{self.output}{HOME_SUFFIX}" else self.home

    @property
    def schema_file(self) -> str:
        """The copy of the schema file, which later calls read, whatever their working directory."""
        return f"{layout.folder(self.home)}{SCHEMA_NAME}"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a call that are settings: `convert.engine`, `schema.file`, `builder.claims` and so on.

    None leaves a setting to variables, earlier calls and the defaults.

    Attributes:
        grok: The pattern of text lines, which sets the format `grok`.
        records: The path to the records in JSON documents, which sets the format `json`.
        keep: Keys beside them that become columns, separated by commas.
        schema: A schema file to copy next to the state.
        types: `infer` to create one from the input, unless an earlier call did.
        exclude: Patterns of files to skip, in addition to those of earlier calls; see `parse_exclusions`.
    """

    engine: str | None = None
    format: str | None = None
    grok: str | None = None
    records: str | None = None
    keep: str | None = None
    schema: str | None = None
    names: Literal["safe", "exact"] | None = None
    claims: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    types: str | None = None
    hive_keys: bool | None = None
    exclude: tuple[str, ...] = ()

    def given(self) -> Document:
        """The settings given by the call, by section."""
        is_text = self.grok is not None
        keys: dict[str, dict[str, Any]] = {
            "input": {
                "format": self.format or ("grok" if is_text else "json" if self.records else None),
                "grok": {"pattern": self.grok} if is_text else None,
                "records": self.records,
                "keep": None if self.keep is None else [each for each in self.keep.split(",") if each],
                "hive_keys": self.hive_keys,
                "exclude": [*self.exclude] or None,
            },
            "convert": {"engine": self.engine},
            "schema": {"file": self.schema or self.types, "names": self.names},
            "builder": {"claims": self.claims},
            "aws": {"region": self.region, "endpoint_url": self.endpoint_url},
        }
        given = {
            name: {key: value for key, value in table.items() if value is not None} for name, table in keys.items()
        }
        return {name: table for name, table in given.items() if table}


def parse_compact_paths(source: str | Sequence[str], destination: str, home: str | None = None) -> CompactPaths:
    """Parse SRC, DST and --state as the user typed them. Symbolic links in local places are resolved.

    Each SRC is a folder, a file, or a pattern such as `logs/*.gz`.

    Raises:
        SettingsError: With every fault.
    """
    faults: list[str] = []
    sources = [_source(text, faults) for text in ([source] if isinstance(source, str) else source)]
    if not sources:
        faults.append("SRC: not given -> expected folders, files or patterns")
    to_place = _parsed("DST", destination, places.parse_own_place, faults)
    if to_place and _is_root(to_place):
        faults.append(f"DST: {to_place} is not a folder -> expected one in it: {layout.folder(to_place)}parquet")
        to_place = None
    home_place = _parsed("--state", home, places.parse_own_place, faults) if home is not None else None
    if to_place and home is None:
        home_place = to_place + HOME_SUFFIX
    found = merged([place for place in sources if place is not None])
    if to_place:
        inside = [(text, place) for place in found for text in _reached(place) if places.overlap(text, to_place)]
        faults += [_overlapping(text, to_place, place.pattern) for text, place in inside]
        if home_place and not inside:
            faults += _faults_of_home(found, to_place, home_place)
    if faults or not (found and to_place and home_place):
        raise SettingsError(faults)
    if len(found) == 1 and not (found[0].names or found[0].pattern):
        return CompactPaths(found[0].folder, to_place, home_place)
    return CompactPaths(" ".join(text for place in found for text in place.texts), to_place, home_place, found)


def parse_sources(texts: Sequence[str]) -> tuple[SourcePlace, ...]:
    """Parse only SRC..., as `parse_compact_paths` does.

    Raises:
        SettingsError: With every fault.
    """
    faults: list[str] = []
    found = [_source(text, faults) for text in texts]
    if faults:
        raise SettingsError(faults)
    return merged([place for place in found if place is not None])


def parse_exclusions(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse --exclude: a pattern of names stays; any other place or pattern becomes an absolute path.

    Raises:
        SettingsError: With every fault.
    """
    faults: list[str] = []
    found = [text if "/" not in text else _excluded(text, faults) for text in texts]
    if faults:
        raise SettingsError(faults)
    return tuple(dict.fromkeys(each for each in found if each))


def _excluded(text: str, faults: list[str]) -> str:
    """A path as a pattern. Existing places are taken literally, even if their names contain pattern characters."""
    is_literal = not layout.is_s3(text) and places.exists(text)
    before, pattern = (None if is_literal else split_pattern(text)) or (text, "")
    place = glob.escape(_parsed("--exclude", before, places.parse_place, faults) or "")
    return layout.folder(place) + pattern if pattern else place


def settings_document(paths: CompactPaths, options: Options, kept: Mapping[str, Any] | None) -> Document:
    """Build the settings of a call, by section; they are stored next to the state.

    They start from the stored settings of an earlier call, if any, which the user may have edited.
    """
    document: Document = {name: dict(table) for name, table in (_defaults(paths) if kept is None else kept).items()}
    home = layout.folder(paths.home)
    own = {"manifests": f"{home}manifests", "output": paths.output, "state": f"{home}state"}
    document["paths"] = {**document.get("paths", {}), **own}
    sources = document.get("input", {}).get("allowed_prefixes", [])
    # Otherwise the settings report the fault.
    is_readable = isinstance(sources, list) and all(isinstance(each, str) for each in sources)
    if is_readable:
        sources = [*sources, *(each for each in paths.prefixes if not is_known(each, sources))]
    document["input"] = {**document.get("input", {}), "allowed_prefixes": sources}
    earlier = document["input"].get("sources", [])
    if isinstance(earlier, list) and len(earlier) <= _MOST_SOURCES:
        known = [each for each in map(str, earlier) if split_pattern(each) or layout.is_s3(each) or places.exists(each)]
        for text in (text for place in paths.sources for text in place.texts):
            if layout.is_text(text) and not is_known(text, known):
                known = [*(each for each in known if not is_known(each, [text])), text]
        document["input"]["sources"] = known[: _MOST_SOURCES + 1]
    grok, excluded = document["input"].get("grok", {}), document["input"].get("exclude", [])
    for name, table in options.given().items():
        document[name] = {**document.get(name, {}), **table}
    if options.exclude and isinstance(excluded, list):
        document["input"]["exclude"] = list(dict.fromkeys([*excluded, *options.exclude]))
    if options.grok is not None and isinstance(grok, dict):
        document["input"]["grok"] = {**grok, "pattern": options.grok}  # with the user's own definitions
    if has_schema_file(document):
        document["schema"]["file"] = paths.schema_file
    return document


def folder_kept_at(place: str, paths: Paths, sink: str) -> str:
    """The name in commands of a folder whose settings `compact` keeps at a place: DST, or the place of --state.

    Empty for a job's settings. A job whose settings are next to its state sends metrics, if only to its log.
    """
    home, _, name = place.rpartition("/")
    own = layout.folder(paths.manifests), layout.folder(paths.state)
    if not home or name != SETTINGS_NAME or own != (f"{home}/manifests/", f"{home}/state/"):
        return ""
    output = layout.folder(paths.output).rstrip("/")
    if home == f"{output}{HOME_SUFFIX}":
        return output
    return home if sink == "none" else ""


def compact_again(folder: str, output: str, sources: Sequence[str]) -> str:
    """The command that compacts into a folder again; empty without one.

    Args:
        folder: The result of `folder_kept_at`.
        output: DST.
        sources: Each SRC of earlier calls. Too many for one line are left for the user to fill in.
    """
    if not folder:
        return ""
    output = layout.folder(output).rstrip("/")
    words = [*map(quoted, sources)] if 0 < len(sources) <= _MOST_SOURCES else ["<SRC>"]
    state = ["--state", quoted(folder)] if folder != output else []
    return " ".join(["compactor compact", *words, quoted(output), *state])


def has_schema_file(document: Mapping[str, Any]) -> bool:
    """Whether the settings name a schema file."""
    file = document.get("schema", {}).get("file")
    return isinstance(file, str) and bool(file)


def other_variables(env: Mapping[str, str], options: Options) -> dict[str, str]:
    """The environment without variables that would override the call itself."""
    given = [("paths", "manifests"), ("paths", "output"), ("paths", "state"), ("input", "allowed_prefixes")]
    given += [(name, key) for name, table in options.given().items() for key in table]
    names = {f"COMPACTOR_{name}__{key}".upper() for name, key in given}
    return {name: value for name, value in env.items() if name.upper() not in names}


def contradictions(paths: CompactPaths, options: Options, kept: Document) -> list[str]:
    """Options of a call that contradict the destination's first call, each as a fault."""
    given, faults = options.given(), list[str]()
    for option, (section, key, default, is_editable) in _LASTING.items():
        has = kept.get(section, {}).get(key, default)
        asked = given.get(section, {}).get(key, has)
        if key == "grok" and isinstance(has, dict) and "pattern" in has:
            has, asked = has["pattern"], asked.get("pattern")
        elif key == "grok" or (key, has, asked) == _WIDER_FORMAT:
            continue
        if asked == has:
            continue
        what = option if asked is True else f"{option} {','.join(asked) if isinstance(asked, list) else asked}"
        if key == "format" and options.format is None:
            what = f"--grok {options.grok}" if options.grok is not None else f"--records {options.records}"
        edited = f", or a different {section}.{key} in {paths.settings_file} for later files" if is_editable else ""
        found = f"{paths.output} has {section}.{key} = {json.dumps(has)} since its first call"
        faults.append(f"{what}: {found} -> expected the same value, a different DST{edited}")
    return faults


def remembered(options: Options, kept: Document, document: Document) -> list[str]:
    """Settings of the destination that a call changed, also for later calls; each as a key with its value."""
    changed = [
        (f"{section}.{key}", document[section][key])
        for section, table in options.given().items()
        for key in table
        if document[section][key] != kept.get(section, {}).get(key)
    ]
    return [f"{key} = {json.dumps(value)}" for key, value in changed]


def has_new_source(paths: CompactPaths, kept: Mapping[str, Any] | None) -> bool:
    """Whether no earlier call for the same output read one of the sources."""
    known = (kept or {}).get("input", {}).get("allowed_prefixes", [])
    return bool(known) and not all(is_known(each, known) for each in paths.prefixes)


def is_known(prefix: str, known: Sequence[str]) -> bool:
    """Whether a prefix equals a known one, or is inside one."""
    return any(layout.is_within(layout.folder(prefix), each) for each in known)


def _defaults(paths: CompactPaths) -> Document:
    builder = {"claims": JOURNAL_CLAIMS} if layout.is_s3(paths.home) else {}
    spark = {"conf": {"spark.ui.enabled": "false"}}
    return {"paths": {}, "input": {}, "schema": {}, "builder": builder, "metrics": {"sink": "none"}, "spark": spark}


def _parsed(name: str, text: str, parse: Callable[[str], str], faults: list[str]) -> str | None:
    try:
        # A folder with a different link to it keeps its files and its state.
        return parse(places.real_place(parse(text)))
    except ValueError as exc:
        faults.append(f"{name}: {text!r} -> expected {exc}")
        return None


def _source(text: str, faults: list[str]) -> SourcePlace | None:
    """One SRC. Existing places are taken literally, even if their names contain pattern characters."""
    is_literal = not layout.is_s3(text) and places.exists(text)
    found = None if is_literal else split_pattern(text)
    if found is not None:
        return _pattern(text, *found, faults)
    place = _parsed("SRC", text, places.parse_place, faults)
    if place is None or layout.is_s3(place) or not places.is_file(place):
        return SourcePlace(place) if place else None
    folder, _, name = place.rpartition("/")
    return SourcePlace(folder or "/", names=(name,))


def _pattern(text: str, folder: str, pattern: str, faults: list[str]) -> SourcePlace | None:
    try:
        re.compile(pattern_expression(pattern))
    except re.error as exc:
        faults.append(f"SRC: {text!r} -> expected a shell pattern, such as logs/*.gz ({exc})")
        return None
    place = _parsed("SRC", folder, places.parse_place, faults)
    return SourcePlace(place, pattern) if place else None


def _reached(place: SourcePlace) -> list[str]:
    return place.texts if place.names else [place.folder]


def _is_root(place: str) -> bool:
    return place == "/" or (layout.is_s3(place) and "/" not in place.removeprefix("s3://"))


def _overlapping(source: str, output: str, pattern: str) -> str:
    apart = "another bucket" if _is_root(source) else f"a folder outside it, such as {source}-parquet"
    if pattern:
        what = f"DST: {output} is in {source}, the folder of the pattern {pattern}"
        return f"{what} -> expected {apart}, or the files themselves: a shell expands patterns without quotes"
    if source == output:
        return f"DST: {output} is SRC itself -> expected {apart}"
    return f"DST: {output} and SRC ({source}) overlap -> expected {apart}"


def _faults_of_home(sources: Sequence[SourcePlace], output: str, home: str) -> list[str]:
    faults = [
        f"--state: {home} and {name} ({place}) overlap -> expected a place outside both"
        for name, place in (*(("SRC", text) for each in sources for text in _reached(each)), ("DST", output))
        if places.overlap(home, place)
    ]
    if layout.is_s3(home) != layout.is_s3(output):
        faults.append(f"--state: {home} -> expected a place on the same kind of storage as DST ({output})")
    return faults
