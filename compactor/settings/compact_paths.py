"""The places and settings of `compactor compact`, which turns one folder into another. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compactor.core import layout
from compactor.core.errors import SettingsError
from compactor.settings import places
from compactor.settings.types import JOURNAL_CLAIMS

HOME_SUFFIX = ".compactor"
SETTINGS_NAME = "compactor.toml"
SCHEMA_NAME = "schema.toml"

LEASE_SECONDS = 20
"""How long a dead planner keeps its files claimed. The next call waits for that; a late planner does no harm."""

Document = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CompactPaths:
    """The three places of a call, each a local folder or an S3 prefix; `home` has state, manifests and settings."""

    source: str
    output: str
    home: str

    @property
    def settings_file(self) -> str:
        return f"{layout.folder(self.home)}{SETTINGS_NAME}"

    @property
    def schema_file(self) -> str:
        """The copy of the schema file, which later calls read wherever they are started."""
        return f"{layout.folder(self.home)}{SCHEMA_NAME}"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a call that are settings: `convert.engine`, `schema.file`, `builder.claims` and so on.

    None leaves a setting to variables, to earlier calls and to the defaults.

    Attributes:
        schema: A schema file to copy beside the state.
        types: `infer` to make one from the input, unless an earlier call did.
    """

    engine: str | None = None
    schema: str | None = None
    names: str | None = None
    claims: str | None = None
    region: str | None = None
    endpoint_url: str | None = None
    types: str | None = None
    hive_keys: bool | None = None

    def given(self) -> Document:
        """The settings that the call names, by section."""
        keys: dict[str, dict[str, Any]] = {
            "input": {"hive_keys": self.hive_keys},
            "convert": {"engine": self.engine},
            "schema": {"file": self.schema or self.types, "names": self.names},
            "builder": {"claims": self.claims},
            "aws": {"region": self.region, "endpoint_url": self.endpoint_url},
        }
        given = {
            name: {key: value for key, value in table.items() if value is not None} for name, table in keys.items()
        }
        return {name: table for name, table in given.items() if table}


def parse_compact_paths(source: str, destination: str, home: str | None = None) -> CompactPaths:
    """Read SRC, DST and --state as the user typed them. Symbolic links in local places are resolved.

    Raises:
        SettingsError: With every fault.
    """
    faults: list[str] = []
    from_place = _parsed("SRC", source, places.parse_place, faults)
    to_place = _parsed("DST", destination, places.parse_own_place, faults)
    if to_place and _is_root(to_place):
        faults.append(f"DST: {to_place} is not a folder -> expected one in it: {layout.folder(to_place)}parquet")
        to_place = None
    home_place = _parsed("--state", home, places.parse_own_place, faults) if home is not None else None
    if to_place and home is None:
        home_place = to_place + HOME_SUFFIX
    if from_place and to_place and places.overlap(from_place, to_place):
        faults.append(_overlapping(from_place, to_place))
    elif from_place and to_place and home_place:
        faults += _faults_of_home(CompactPaths(from_place, to_place, home_place))
    if faults or not (from_place and to_place and home_place):
        raise SettingsError(faults)
    return CompactPaths(from_place, to_place, home_place)


def settings_document(paths: CompactPaths, options: Options, kept: Mapping[str, Any] | None) -> Document:
    """Build the settings of a call, by section; they are kept beside the state.

    They start from the settings that an earlier call kept and the user may have edited, if there are any.
    """
    document: Document = {name: dict(table) for name, table in (_defaults(paths) if kept is None else kept).items()}
    home = layout.folder(paths.home)
    own = {"manifests": f"{home}manifests", "output": paths.output, "state": f"{home}state"}
    document["paths"] = {**document.get("paths", {}), **own}
    sources = document.get("input", {}).get("allowed_prefixes", [])
    # Otherwise the settings name the fault.
    is_readable = isinstance(sources, list) and all(isinstance(each, str) for each in sources)
    if is_readable and not any(layout.is_within(layout.folder(paths.source), each) for each in sources):
        sources = [*sources, paths.source]
    document["input"] = {**document.get("input", {}), "allowed_prefixes": sources}
    for name, table in options.given().items():
        document[name] = {**document.get(name, {}), **table}
    if has_schema_file(document):
        document["schema"]["file"] = paths.schema_file
    return document


def has_schema_file(document: Mapping[str, Any]) -> bool:
    """Whether the settings name a schema file."""
    file = document.get("schema", {}).get("file")
    return isinstance(file, str) and bool(file)


def variables_beside(env: Mapping[str, str], options: Options) -> dict[str, str]:
    """The environment without the variables that would override the call itself."""
    given = [("paths", "manifests"), ("paths", "output"), ("paths", "state"), ("input", "allowed_prefixes")]
    given += [(name, key) for name, table in options.given().items() for key in table]
    names = {f"COMPACTOR_{name}__{key}".upper() for name, key in given}
    return {name: value for name, value in env.items() if name not in names}


def is_new_source(source: str, kept: Mapping[str, Any] | None) -> bool:
    """Whether no earlier call for the same output read from this source."""
    known = (kept or {}).get("input", {}).get("allowed_prefixes", [])
    return bool(known) and not any(layout.is_within(layout.folder(source), each) for each in known)


def _defaults(paths: CompactPaths) -> Document:
    builder: dict[str, Any] = {"claim_lease_seconds": LEASE_SECONDS}
    if layout.is_s3(paths.home):
        builder["claims"] = JOURNAL_CLAIMS
    spark = {"conf": {"spark.ui.enabled": "false"}}
    # A person who compacts a folder wants the columns of all its files at once.
    schema = {"max_new_columns_per_manifest": 10_000, "max_new_columns_per_day": 10_000}
    return {"paths": {}, "input": {}, "schema": schema, "builder": builder, "metrics": {"sink": "none"}, "spark": spark}


def _parsed(name: str, text: str, parse: Callable[[str], str], faults: list[str]) -> str | None:
    try:
        # A folder that is reached by another link keeps its files and its state.
        return parse(places.real_place(parse(text)))
    except ValueError as exc:
        faults.append(f"{name}: {text!r} -> expected {exc}")
        return None


def _is_root(place: str) -> bool:
    return place == "/" or (layout.is_s3(place) and "/" not in place.removeprefix("s3://"))


def _overlapping(source: str, output: str) -> str:
    apart = "another bucket" if _is_root(source) else f"a folder outside it, such as {source}-parquet"
    if source == output:
        return f"DST: {output} is SRC itself -> expected {apart}"
    return f"DST: {output} and SRC ({source}) overlap -> expected {apart}"


def _faults_of_home(paths: CompactPaths) -> list[str]:
    faults = [
        f"--state: {paths.home} and {name} ({place}) overlap -> expected a place outside both"
        for name, place in (("SRC", paths.source), ("DST", paths.output))
        if places.overlap(paths.home, place)
    ]
    if layout.is_s3(paths.home) != layout.is_s3(paths.output):
        faults.append(f"--state: {paths.home} -> expected a place on the same kind of store as DST ({paths.output})")
    return faults
