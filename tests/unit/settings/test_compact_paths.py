"""`compactor compact`: the places of a call, the faults of places, and the settings of a call."""

import tomllib
from pathlib import Path

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.compact_paths import (
    CompactPaths,
    Options,
    compact_again,
    folder_kept_at,
    other_variables,
    parse_compact_paths,
    settings_document,
)
from compactor.settings.sections import Paths
from compactor.settings.settings import parse_settings
from compactor.settings.toml import toml_of
from compactor.settings.types import JOURNAL_CLAIMS

DATES = "COMPACTOR_SCHEMA__METADATA_COLUMNS"
SLA = "COMPACTOR_CONTROL__SLA_SECONDS"
OWN = {"manifests": "/rows.compactor/manifests", "output": "/rows", "state": "/rows.compactor/state"}
PATHS = CompactPaths("/raw", "/rows", "/rows.compactor")


@pytest.mark.parametrize(
    ("source", "destination", "home", "expected"),
    [
        ("/raw", "/rows/", None, CompactPaths("/raw", "/rows", "/rows.compactor")),
        (
            "s3://lake/raw",
            "s3a://lake/rows/",
            None,
            CompactPaths("s3://lake/raw", "s3://lake/rows", "s3://lake/rows.compactor"),
        ),
        ("s3://lake", "/rows", "/own", CompactPaths("s3://lake", "/rows", "/own")),
        ("/raw", "/raw-rows", None, CompactPaths("/raw", "/raw-rows", "/raw-rows.compactor")),
    ],
)
def test_places_of_a_call(source: str, destination: str, home: str | None, expected: CompactPaths) -> None:
    """State is beside the destination, outside the folder that readers of the rows list."""
    assert parse_compact_paths(source, destination, home) == expected


@pytest.mark.parametrize(
    ("source", "destination", "home", "fault"),
    [
        ("/raw", "/raw", None, "DST: /raw is SRC itself -> expected a folder outside it, such as /raw-parquet"),
        ("/raw", "/raw/out", None, "DST: /raw/out and SRC (/raw) overlap"),
        ("/a/raw", "/a", None, "DST: /a and SRC (/a/raw) overlap"),
        ("s3://lake", "s3://lake/rows", None, "expected another bucket"),
        (
            "/raw",
            "s3://bucket",
            None,
            "DST: s3://bucket is not a folder -> expected one in it: s3://bucket/parquet",
        ),
        ("/raw", "/", None, "DST: / is not a folder"),
        ("/raw", "/rows", "/rows/own", "--state: /rows/own and DST (/rows) overlap"),
        ("/raw", "/rows", "/raw/own", "--state: /raw/own and SRC (/raw) overlap"),
        ("/rows.compactor/x", "/rows", None, "--state: /rows.compactor and SRC (/rows.compactor/x) overlap"),
        ("/raw", "s3://lake/rows", "/own", "--state: /own -> expected a place on the same kind of storage as DST"),
        ("/raw", "/rows*", None, r"DST: '/rows*' -> expected a place without *"),
        ("", "", "", "SRC: ''"),
    ],
)
def test_faults_of_places(source: str, destination: str, home: str | None, fault: str) -> None:
    """Each fault names the place as it was typed, with what was expected."""
    with pytest.raises(SettingsError) as caught:
        parse_compact_paths(source, destination, home)
    assert fault in str(caught.value)


def test_all_faults_come_at_once() -> None:
    """All faults are in one error."""
    with pytest.raises(SettingsError) as caught:
        parse_compact_paths("", "s3://bucket", "s3://lake/*")
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["SRC", "DST", "--state"]


def test_first_settings() -> None:
    """The first settings can be used as they are; on S3 claims need no table."""
    local = parse_settings(settings_document(PATHS, Options(), None))
    assert (local.paths.output, local.paths.state) == ("/rows", "/rows.compactor/state")
    assert (local.input.allowed_prefixes, local.builder.claims) == (("/raw",), "")
    on_s3 = parse_settings(
        settings_document(parse_compact_paths("/raw", "s3://lake/rows"), Options(names="exact"), None)
    )
    on_s3.require_claims()
    assert (on_s3.builder.claims, on_s3.schema.names) == (JOURNAL_CLAIMS, "exact")


def test_what_an_earlier_call_kept_holds() -> None:
    """What was given or edited before holds until it is given anew; sources add up, except one inside another."""
    first = settings_document(PATHS, Options(engine="spark", names="exact"), None)
    first["output"] = {"compression": "zstd"}
    other = CompactPaths("/raw2/day", "/rows", "/rows.compactor")
    second = settings_document(other, Options(engine="auto"), first)
    assert second["output"] == {"compression": "zstd"}
    assert (second["convert"], second["schema"]["names"]) == ({"engine": "auto"}, "exact")
    assert second["input"]["allowed_prefixes"] == ["/raw", "/raw2/day"]
    again = settings_document(CompactPaths("/raw/deeper", "/rows", "/rows.compactor"), Options(), second)
    assert again | {"input": second["input"]} == second
    assert again["input"]["allowed_prefixes"] == second["input"]["allowed_prefixes"]
    assert first["input"]["allowed_prefixes"] == ["/raw"]


@pytest.mark.parametrize("sources", [5, True, "/raw", [5], {"a": "b"}])
def test_kept_sources_of_a_wrong_kind_are_a_fault(sources: object) -> None:
    """The error names the key that the user edited."""
    document = settings_document(PATHS, Options(), {"input": {"allowed_prefixes": sources}})
    with pytest.raises(SettingsError, match="allowed_prefixes"):
        parse_settings(document)


def test_a_moved_folder_takes_its_settings_along() -> None:
    """Places are those of the call, not those of the folder before it was moved."""
    document = settings_document(
        CompactPaths("/raw", "/moved", "/moved.compactor"), Options(), settings_document(PATHS, Options(), None)
    )
    assert document["paths"] == {
        "manifests": "/moved.compactor/manifests",
        "output": "/moved",
        "state": "/moved.compactor/state",
    }


def test_a_call_goes_before_variables_and_these_before_what_was_kept() -> None:
    """Variables that are meant for other settings move no place; the others hold."""
    env = {
        "COMPACTOR_PATHS__STATE": "/elsewhere",
        "COMPACTOR_SCHEMA__NAMES": "exact",
        "COMPACTOR_AWS__REGION": "eu-west-1",
        "COMPACTOR_AWS__ENDPOINT_URL": "http://127.0.0.1:1",
        "PATH": "/bin",
    }
    options = Options(region="us-east-1")
    settings = parse_settings(settings_document(PATHS, options, None), other_variables(env, options))
    assert settings.paths.state == "/rows.compactor/state"
    assert settings.schema.names == "exact"
    assert (settings.aws.region, settings.aws.endpoint_url) == ("us-east-1", "http://127.0.0.1:1")


def test_settings_survive_being_written() -> None:
    """Any text, number, list and table comes back from TOML as it was."""
    document = {
        "input": {"allowed_prefixes": ['/a "b" \\c', "s3://lake/ünï 😀"], "max_line_bytes": 5},
        "spark": {"conf": {"spark.ui.enabled": "false", "a b": True}},
        "aws": {"timeout_seconds": 1.5},
    }
    text = toml_of(document, ["first", ""])
    assert text.startswith("# first\n#\n")
    assert tomllib.loads(text) == document


@pytest.mark.parametrize(
    ("place", "own", "sink", "expected"),
    [
        ("/rows.compactor/compactor.toml", {}, "log", "/rows"),
        ("/rows.compactor/compactor.toml", {"output": "/rows/"}, "none", "/rows"),
        ("/rows.compactor/compactor.toml", {"output": "/else"}, "none", "/rows.compactor"),
        ("/rows.compactor/compactor.toml", {"output": "/else"}, "log", ""),
        ("/rows.compactor/compactor.toml", {"state": "/else/state"}, "none", ""),
        ("/rows.compactor/other.toml", {}, "none", ""),
        ("/compactor.toml", {"manifests": "/manifests", "state": "/state"}, "none", ""),
        ("", {}, "none", ""),
    ],
)
def test_settings_of_a_folder(place: str, own: dict[str, str], sink: str, expected: str) -> None:
    """Settings that `compact` keeps are told from a job's by where they are, and by the places that they name."""
    assert folder_kept_at(place, Paths(**{**OWN, **own}), sink) == expected


@pytest.mark.parametrize(
    ("folder", "env", "expected"), [("/rows", {}, None), ("/rows", {SLA: "60"}, 60), ("", {}, 900)]
)
def test_sla_of_a_folder(folder: str, env: dict[str, str], expected: float | None) -> None:
    """A folder that a person compacts has no SLA unless its settings have one; a job has its default."""
    document = {"paths": OWN, "input": {"allowed_prefixes": ["/raw"]}}
    settings = parse_settings(document, env, "/rows.compactor/compactor.toml" if folder else "/etc/compactor.toml")
    assert (settings.folder, settings.sla_seconds) == (folder, expected)


@pytest.mark.parametrize(
    ("folder", "env", "expected"), [("/rows", {}, ()), ("/rows", {DATES: "file_date"}, ("file_date",))]
)
def test_metadata_columns_of_a_folder(folder: str, env: dict[str, str], expected: tuple[str, ...]) -> None:
    """The rows of a folder that a person compacts are as in the input, unless its settings ask for more."""
    document = {"paths": OWN, "input": {"allowed_prefixes": ["/raw"]}}
    settings = parse_settings(document, env, "/rows.compactor/compactor.toml")
    assert (settings.folder, settings.metadata_columns) == (folder, expected)


def test_commands_for_a_folder() -> None:
    """The command that compacts again names DST, and the state where it is elsewhere."""
    assert compact_again("", "/rows", ["/raw"]) == ""
    assert compact_again("/rows", "/rows/", ["/raw"]) == "compactor compact /raw /rows"
    assert (
        compact_again("/own", "/my rows", ["/a", "/b/*.gz"]) == "compactor compact /a '/b/*.gz' '/my rows' --state /own"
    )
    assert compact_again("/rows", "/rows", []) == "compactor compact <SRC> /rows"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (["a"], ["a"]),
        (["a", "b", "a"], ["a", "b"]),
        (["a", "a/x", "a/*.gz"], ["a"]),
        (["a/x", "b", "a"], ["b", "a"]),
        (["gone", "a"], ["a"]),
        (["a", "b", "c", "d", "e"], []),
    ],
)
def test_sources_of_earlier_calls(tmp_path: Path, calls: list[str], expected: list[str]) -> None:
    """A suggested command names those that are still there; of too many, none."""
    for name in ("a/x", "b", "c", "d", "e"):
        (tmp_path / name).mkdir(parents=True)
    document = None
    for each in calls:
        paths = CompactPaths(str(tmp_path / each), "/rows", "/rows.compactor")
        document = settings_document(paths, Options(), document)
    words = " ".join(str(tmp_path / each) for each in expected) or "<SRC>"
    assert document is not None
    assert compact_again("/rows", "/rows", document["input"]["sources"]) == f"compactor compact {words} /rows"
