"""Promises of the settings: every fault at once, and nothing but settings or faults from any document."""

import json
import pickle
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.adapters.aws.clients import s3_client
from compactor.adapters.aws.local_setup import make_buckets
from compactor.adapters.local.native.module import is_installed
from compactor.adapters.logs import stray_rules
from compactor.core.errors import SettingsError
from compactor.core.layout import Layout, ManifestKey
from compactor.core.logs.names import LogName
from compactor.settings.settings import SECTIONS, Settings, load_settings, parse_settings
from compactor.settings.types import REFUSED_SPARK_CONF
from compactor.settings.validation import read_document, read_environment, validate
from compactor.wiring.engine_choice import is_in_place
from compactor.wiring.settings_files import job_arguments, overriding, settings_at
from tests.support.aws_stand_in import REGION
from tests.support.settings_files import write_settings

TABLE = {"catalog": "sql", "uri": "sqlite:////w/c.db", "warehouse": "/w/t", "name": "lake.events"}


def published(
    root: str = "/w", engine: str = "auto", table: Mapping[str, object] = TABLE
) -> dict[str, dict[str, object]]:
    return {
        "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{root}/raw"]},
        "builder": {"claims": "@journal"},
        "convert": {"engine": engine},
        "table": dict(table),
    }


def in_place(**given: str) -> bool:
    table = {**TABLE, "name": given.get("table", TABLE["name"])}
    return is_in_place(parse_settings(published(given.get("root", "/w"), given.get("engine", "auto"), table)))


@pytest.mark.skipif(not is_installed(), reason="needs the native engine")
def test_a_table_on_s3_needs_no_copy() -> None:
    """On a disk a copy is a link, and costs nothing."""
    assert in_place(root="s3://lake")
    assert not in_place()
    assert not in_place(root="s3://lake", engine="spark")
    assert not in_place(root="s3://lake", table="")


def loaded(root: Path, source: dict[str, Any], prefix: str = "kinesis://main/orders") -> Settings:
    return load_settings(
        write_settings(root, input={"allowed_prefixes": [prefix]}, kinesis={"sources": {"main": source}}), {}
    )


def test_streams_that_the_job_lands(tmp_path: Path) -> None:
    """Those that the input names, each once; all of a source is left to commands. A job has to run for them."""

    def landing(*places: str, mode: str = "always") -> Settings:
        given: dict[str, Any] = {"input": {"allowed_prefixes": places}, "control": {"mode": mode}}
        return load_settings(write_settings(tmp_path, kinesis={"sources": {"main": {}}}, **given), {})

    found = landing("kinesis://main/orders/", "kinesis://main/orders", "kinesis://main", f"{tmp_path}/raw")
    assert found.logs == (LogName("kinesis", "main", "orders"),)
    assert landing("kinesis://main", mode="on_work").logs == ()
    with pytest.raises(SettingsError, match="only a running job lands kinesis://main/orders, which"):
        landing("kinesis://main/orders", mode="on_work")
    with pytest.raises(SettingsError, match=r"expected a source of kinesis\.sources"):
        landing("kinesis://away/orders")


def test_sources(tmp_path: Path) -> None:
    """Every key may be left out."""
    found = loaded(tmp_path, {"region": "eu-west-1", "consumer": "compactor", "strays": "drop"})
    assert found.input.allowed_prefixes == ("kinesis://main/orders",)
    assert stray_rules(found.kinesis.sources) == {"main": "drop"}
    assert stray_rules(loaded(tmp_path, {}, "kinesis://main/").kinesis.sources) == {"main": "keep"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"region": "Frankfurt"}, "region as a region such as eu-central-1"),
        ({"strays": "both"}, "strays as keep or drop"),
        ({"consumer": "a b"}, "consumer as the name of a registered consumer"),
        ({"endpoint_url": "localhost"}, "endpoint_url as http"),
        ({"landing": "s3://b"}, "only region, consumer, strays, endpoint_url, not landing"),
    ],
)
def test_faults(tmp_path: Path, source: dict[str, Any], expected: str) -> None:
    """Each is told with what was expected."""
    with pytest.raises(SettingsError, match=expected):
        loaded(tmp_path, source)


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [("kinesis://other/orders", r"a source of kinesis\.sources"), ("kinesis://main/a/b", "kinesis://source/stream")],
)
def test_prefixes(tmp_path: Path, prefix: str, expected: str) -> None:
    """Their source has to be named, and they name a stream or all of a source."""
    with pytest.raises(SettingsError, match=expected):
        loaded(tmp_path, {}, prefix)


CONFIG = Path(__file__).parents[3] / "config"
SHIPPED = ["local.toml", "dev.toml", "prod.toml"]
KEYS = {f"{name}.{key}" for name, model in SECTIONS.items() for key in model.model_fields}


def document(**changes: Any) -> dict[str, Any]:
    """The least that works, with `section__key` values changed."""
    made: dict[str, Any] = {
        "paths": {"manifests": "s3://own/manifests", "output": "s3://own/output", "state": "s3://own/state"},
        "input": {"allowed_prefixes": ["s3://raw"]},
    }
    for name, value in changes.items():
        section, _, key = name.partition("__")
        made.setdefault(section, {})[key] = value
    return made


def faults_of(made: dict[str, Any], env: dict[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        parse_settings(made, env)
    return caught.value.faults


def test_defaults() -> None:
    """Four keys are enough; all others have defaults."""
    settings = parse_settings(document())
    assert settings.input.max_line_bytes == 16 * 1024 * 1024
    assert settings.input.max_decompressed_bytes == 8 * 1024**3
    assert settings.output.target_file_bytes == 128 * 1024 * 1024
    assert settings.builder.target_manifest_bytes == 1024**3
    assert settings.metadata_columns == ("file_date",)
    assert settings.spark.conf == {}
    assert settings.layout() == Layout(manifests="s3://own/manifests", output="s3://own/output", state="s3://own/state")


def test_layout_follows_the_settings() -> None:
    """The places are the ones in the settings, template and codec included."""
    settings = parse_settings(document(output__folder="date={date}", output__compression="zstd"))
    assert (
        settings.layout().output_file(ManifestKey("2025-12-21", "m"), 0)
        == "s3://own/output/date=2025-12-21/m-00000.zstd.parquet"
    )


@pytest.mark.parametrize(
    ("folder", "columns", "expected"),
    [
        ("date={date}", ["_source_file", "file_date"], ("_source_file", "file_date")),
        ("file_date={date}", ["_source_file", "file_date"], ("_source_file",)),
        ("by/File_Date={date}/rows", ["file_date"], ()),
    ],
)
def test_no_column_is_both_of_folders_and_of_files(folder: str, columns: list[str], expected: tuple[str, ...]) -> None:
    """A metadata column is left out if readers get one of its name from the folders."""
    settings = parse_settings(document(output__folder=folder, schema__metadata_columns=columns))
    assert settings.metadata_columns == expected


def test_settings_can_be_sent_to_another_process() -> None:
    """Settings survive pickling, and so do their faults."""
    settings = parse_settings(document(spark__conf={"spark.x": 1}))
    assert pickle.loads(pickle.dumps(settings)) == settings  # noqa: S301  our own bytes
    assert pickle.loads(pickle.dumps(SettingsError(["a", "b"]))).faults == ("a", "b")  # noqa: S301


WRONG: list[tuple[str, Any, str]] = [
    ("paths__output", 5, "paths.output: 5 -> expected a string"),
    ("paths__output", "", 'paths.output: "" -> expected s3://bucket/prefix'),
    ("paths__output", "s3://own/out*", "without *"),
    ("paths__output", "s3://own/a//b", "without empty, . or .. segments"),
    ("paths__output", "s3://own/a/../b", "without empty, . or .. segments"),
    ("paths__output", "s3://", "is not a bucket name"),
    ("paths__output", "s3://a b/c", "is not a bucket name"),
    ("paths__output", "hdfs://host/a", "expected s3://bucket/prefix, file:///folder or a path"),
    ("paths__output", "file://host/a", "without a host"),
    ("paths__output", "file:/a", "expected s3://bucket/prefix, file:///folder or a path"),
    ("paths__output", "~/output", "~, which is not expanded"),
    ("paths__output", "/a\0b", "without control characters"),
    ("paths__staging", "/staging", "expected s3://bucket/prefix, or empty"),
    ("input__allowed_prefixes", [], "input.allowed_prefixes: [] -> expected at least one place"),
    ("input__allowed_prefixes", "s3://raw", 'input.allowed_prefixes: "s3://raw" -> expected a list'),
    ("input__allowed_prefixes", ["s3://raw", 7], "input.allowed_prefixes[1]: 7 -> expected a string"),
    ("input__allowed_prefixes", ["http://raw"], 'input.allowed_prefixes[0]: "http://raw" -> expected s3://'),
    ("input__discovery", "some", "input.discovery: \"some\" -> expected 'full' or 'declared'"),
    ("input__discovery", "declared", 'schema.file: "" -> expected a schema file, because input.discovery is'),
    ("input__max_line_bytes", 0, "input.max_line_bytes: 0 -> expected at least 1"),
    ("input__max_line_bytes", 1024**3 + 1, "input.max_line_bytes: 1073741825 -> expected at most 1073741824"),
    ("input__max_line_bytes", "5", 'input.max_line_bytes: "5" -> expected a whole number'),
    ("input__max_line_bytes", True, "input.max_line_bytes: true -> expected a whole number"),
    ("input__max_line_bytes", 5.0, "input.max_line_bytes: 5.0 -> expected a whole number"),
    ("input__max_line_bytes", 2**20000, "input.max_line_bytes: a int -> expected at most"),
    ("input__on_changed_file", None, "input.on_changed_file: null -> expected 'skip' or 'read'"),
    ("schema__max_columns", 10_001, "schema.max_columns: 10001 -> expected at most 10000"),
    ("schema__metadata_columns", ["_source"], "schema.metadata_columns[0]: \"_source\" -> expected '_source_file',"),
    ("schema__metadata_columns", ["_manifest_id"] * 2, "expected no duplicates"),
    ("schema__file", 5, "schema.file: 5 -> expected a string"),
    ("schema__file", "s3://bucket", 'schema.file: "s3://bucket" -> expected s3://bucket/key'),
    ("schema__file", "/etc/columns/", 'schema.file: "/etc/columns/" -> expected s3://bucket/key'),
    ("schema__file", "ftp://host/a", "expected s3://bucket/prefix, file:///folder or a path"),
    ("output__target_file_bytes", 1024 * 1024 - 1, "output.target_file_bytes: 1048575 -> expected at least 1048576"),
    ("output__folder", "merged", 'output.folder: "merged" -> expected a folder such as merged-parquet-{date}'),
    ("output__folder", "{date:{x}}", "expected exactly one {date}"),
    ("output__compression", "gzip", "output.compression: \"gzip\" -> expected 'snappy' or 'zstd'"),
    ("stream__trigger_interval_seconds", 0, "stream.trigger_interval_seconds: 0 -> expected more than 0"),
    ("stream__trigger_interval_seconds", float("nan"), "stream.trigger_interval_seconds: NaN -> expected"),
    ("stream__trigger_interval_seconds", date(2025, 1, 1), '"2025-01-01" -> expected a number'),
    ("stream__manifests_in_flight", 0, "stream.manifests_in_flight: 0 -> expected at least 1"),
    ("builder__claims", "a/b", 'builder.claims: "a/b" -> expected 3 to 255 letters'),
    ("aws__region", "Frankfurt", 'aws.region: "Frankfurt" -> expected a region such as'),
    ("aws__endpoint_url", "localhost:5000", 'aws.endpoint_url: "localhost:5000" -> expected http://'),
    ("metrics__namespace", "", 'metrics.namespace: "" -> expected a name'),
    ("metrics__namespace", "AWS/Glue", "not below AWS/"),
    ("spark__conf", [], "spark.conf: (value not shown) -> expected a table"),
    ("spark__conf", {"spark": {"ui": 1}}, "a name with dots needs quotes"),
    (
        "spark__conf",
        {"spark.x": [1]},
        "spark.conf[spark.x]: (value not shown) -> expected a string, a number or a boolean",
    ),
    ("outptu__folder", "x", "outptu: unknown section -> expected one of"),
    ("output__fodler", "x", "output.fodler: unknown key -> expected one of"),
]


@pytest.mark.parametrize(
    ("name", "value", "expected"), WRONG, ids=[f"{n}-{name}" for n, (name, _, _) in enumerate(WRONG)]
)
def test_a_fault_says_what_where_and_what_was_expected(name: str, value: Any, expected: str) -> None:
    """One wrong value gives one line: its key, what it is, and what was expected."""
    faults = faults_of(document(**{name: value}))
    assert len(faults) == 1
    assert expected in faults[0]
    assert len(faults[0]) < 500


@pytest.mark.parametrize(
    ("name", "meant"),
    [("outptu__x", "output"), ("output__fodler", "folder"), ("stream__max_atempts", "max_attempts")],
)
def test_a_misspelled_name_is_recognised(name: str, meant: str) -> None:
    """A name that is nearly right gets a suggestion."""
    assert faults_of(document(**{name: 1}))[0].endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("key", sorted(REFUSED_SPARK_CONF))
def test_spark_properties_that_break_a_promise_are_refused(key: str) -> None:
    """A property that would break a promise is refused with the reason."""
    faults = faults_of(document(spark__conf={key: "true", "spark.ui.enabled": False}))
    assert len(faults) == 1
    assert REFUSED_SPARK_CONF[key] in faults[0]


def test_spark_properties_become_strings() -> None:
    """Properties come out as Spark takes them, whatever TOML type they were written in."""
    conf = {"spark.a": True, "spark.b": False, "spark.c": 3, "spark.d": 0.5, "spark.e": "1g"}
    assert parse_settings(document(spark__conf=conf)).spark.conf == {
        "spark.a": "true", "spark.b": "false", "spark.c": "3", "spark.d": "0.5", "spark.e": "1g",
    }  # fmt: skip


PLACES = [
    ("s3://own/output", "s3://own/output"),
    ("s3://own/output/", "s3://own/output"),
    ("s3a://own/output", "s3://own/output"),
    ("s3://output", "s3://output"),
]
LOCAL_PLACES = [
    ("/data/output", "/data/output"),
    ("file:///data/output/", "/data/output"),
    ("/data//x/./../output", "/data/output"),
    ("data/output", f"{Path.cwd()}/data/output"),
    ("./data/output", f"{Path.cwd()}/data/output"),
    ("data/ü (1)/x", f"{Path.cwd()}/data/ü (1)/x"),
]


@pytest.mark.parametrize(("text", "expected"), PLACES)
def test_places_on_s3(text: str, expected: str) -> None:
    """A place on S3 has one spelling."""
    assert parse_settings(document(paths__output=text)).paths.output == expected


@pytest.mark.parametrize(("text", "expected"), LOCAL_PLACES)
def test_local_places(text: str, expected: str) -> None:
    """A local place is absolute, a relative one from the current working directory."""
    made = document(paths__manifests="/m", paths__state="/s", paths__output=text)
    assert parse_settings(made).paths.output == expected


OVERLAPS: list[tuple[dict[str, Any], list[str]]] = [
    ({"paths__state": "s3://own/output/state"}, ["paths.state"]),
    ({"paths__state": "s3://own/output"}, ["paths.state"]),
    ({"paths__state": "s3a://own/output/"}, ["paths.state"]),
    ({"paths__state": "s3://own"}, ["paths.state", "paths.state"]),
    ({"paths__state": "s3://own/output-state"}, []),
    ({"paths__staging": "s3://own/output/staging"}, ["paths.staging"]),
    ({"paths__staging": "s3://scratch"}, []),
    ({"input__allowed_prefixes": ["s3://own"]}, ["input.allowed_prefixes[0]"] * 3),
    ({"input__allowed_prefixes": ["s3://raw", "s3n://own/state/x"]}, ["input.allowed_prefixes[1]"]),
    ({"input__allowed_prefixes": ["s3://owner", "/data"]}, []),
    ({"paths__state": "/state"}, ["paths"]),
    ({"schema__file": "s3://own/manifests/columns.toml"}, ["schema.file"]),
    ({"schema__file": "/etc/columns.toml"}, []),
    ({"paths__state": "/a/b", "paths__output": "/a/c/..", "paths__manifests": "/m"}, ["paths.state"]),
    (
        {"paths__state": "/a", "paths__output": "/b", "paths__manifests": "/c", "input__allowed_prefixes": ["/"]},
        ["input.allowed_prefixes[0]"] * 3,
    ),
]


@pytest.mark.parametrize(("changes", "keys"), OVERLAPS)
def test_places_that_overlap_are_refused(changes: dict[str, Any], keys: list[str]) -> None:
    """No place lies in another one, and the compactor's own are on one kind of store."""
    try:
        parse_settings(document(**changes))
        found = []
    except SettingsError as refused:
        found = [fault.partition(": ")[0] for fault in refused.faults]
    assert found == keys


def test_places_that_overlap_through_a_link_are_refused(tmp_path: Path) -> None:
    """A symbolic link into another place is seen through."""
    (tmp_path / "output").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "output")
    own = {f"paths__{key}": str(tmp_path / key) for key in ("manifests", "output", "state")}
    assert [fault.partition(": ")[0] for fault in faults_of(document(**own))] == ["paths.state"]


def test_all_faults_come_at_once() -> None:
    """Wrong names, types, bounds, variables and combinations are all reported together."""
    made = document(
        paths__state="s3://own/output/x", paths__manifests=3, output__compresion="zstd", stream__max_attempts=0
    )
    made["input"] = {"allowed_prefixes": ["s3://own/output"], "discovery": "declared", "max_line_bytes": "many"}
    made["nonsense"] = 1
    faults = faults_of(made, {"COMPACTOR_AWS__REGION": "?", "COMPACTOR_AWS__REIGON": "x", "COMPACTOR_X__Y": "z"})
    assert sorted(fault.partition(": ")[0] for fault in faults) == sorted([
        "nonsense", "output.compresion", "COMPACTOR_AWS__REIGON", "COMPACTOR_X__Y", "paths.manifests",
        "input.max_line_bytes", "stream.max_attempts", "aws.region", "paths.state", "input.allowed_prefixes[0]",
        "input.allowed_prefixes[0]", "schema.file",
    ])  # fmt: skip


def test_what_is_required_is_asked_for() -> None:
    """Without any settings, each key that must be set is named with what it takes."""
    faults = faults_of({})
    assert [fault.partition(":")[0] for fault in faults] == [
        "paths.manifests", "paths.output", "paths.state", "input.allowed_prefixes",
    ]  # fmt: skip
    assert all("not set -> expected" in fault for fault in faults)


OVERRIDES: list[tuple[str, str, Any]] = [
    ("PATHS__OUTPUT", "s3://elsewhere/x/", "s3://elsewhere/x"),
    ("INPUT__MAX_LINE_BYTES", "1024", 1024),
    ("INPUT__ALLOWED_PREFIXES", "s3://one, s3://two", ("s3://one", "s3://two")),
    ("INPUT__ALLOWED_PREFIXES", '["s3://one/a,b"]', ("s3://one/a,b",)),
    ("INPUT__ON_CHANGED_FILE", "read", "read"),
    ("SCHEMA__METADATA_COLUMNS", "", ()),
    ("SCHEMA__METADATA_COLUMNS", '["_manifest_id", "_source_file"]', ("_manifest_id", "_source_file")),
    ("STREAM__TRIGGER_INTERVAL_SECONDS", "0.5", 0.5),
    ("BUILDER__CLAIMS", "", ""),
    ("AWS__ENDPOINT_URL", "http://127.0.0.1:5000", "http://127.0.0.1:5000"),
    ("SPARK__CONF", '{"spark.ui.enabled": false, "spark.x": 1}', {"spark.ui.enabled": "false", "spark.x": "1"}),
]


@pytest.mark.parametrize(("variable", "text", "expected"), OVERRIDES)
def test_a_variable_overrides_its_key(variable: str, text: str, expected: Any) -> None:
    """A variable's text is read by the type of its key, and wins over the document."""
    section, _, key = variable.lower().partition("__")
    made = document(builder__claims="table", spark__conf={"spark.old": "1"}, schema__metadata_columns=["_manifest_id"])
    settings = parse_settings(made, {f"COMPACTOR_{variable}": text})
    assert getattr(getattr(settings, section), key) == expected


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("INPUT__MAX_LINE_BYTES", "many"),
        ("INPUT__MAX_LINE_BYTES", "1.5"),
        ("INPUT__MAX_LINE_BYTES", ""),
        ("INPUT__MAX_LINE_BYTES", "9" * 5000),
        ("INPUT__ALLOWED_PREFIXES", "[1"),
        ("INPUT__ALLOWED_PREFIXES", "[" * 100_000),
        ("INPUT__ALLOWED_PREFIXES", ","),
        ("INPUT__ALLOWED_PREFIXES", "s3://raw,ftp://x"),
        ("STREAM__TRIGGER_INTERVAL_SECONDS", "inf"),
        ("SPARK__CONF", "spark.x=1"),
        ("AWS__REGION", "eu-central-1\udcff"),
    ],
)
def test_a_fault_of_a_variable_says_so(variable: str, text: str) -> None:
    """A wrong value from the environment is told apart from one in the file."""
    (fault,) = faults_of(document(), {f"COMPACTOR_{variable}": text})
    assert f"(from COMPACTOR_{variable})" in fault
    assert fault.isprintable()


def variable_of(key: str) -> str:
    return f"COMPACTOR_{key.upper().replace('.', '__')}"


def valid_values() -> Iterator[tuple[str, object]]:
    """Valid values of every key: those of the shipped files, defaults, bounds, and each of several choices."""
    for name in SHIPPED:
        for section, table in tomllib.loads((CONFIG / name).read_text()).items():
            yield from ((f"{section}.{key}", value) for key, value in table.items())
    for section, model in SECTIONS.items():
        for key, field in model.model_fields.items():
            if not field.is_required():
                yield f"{section}.{key}", field.get_default(call_default_factory=True)
            if get_origin(field.annotation) is Literal:
                yield from ((f"{section}.{key}", choice) for choice in get_args(field.annotation))
            if field.annotation is bool:
                yield from ((f"{section}.{key}", choice) for choice in (True, False))
            bounds = (getattr(rule, name, None) for rule in field.metadata for name in ("ge", "le"))
            yield from ((f"{section}.{key}", bound) for bound in bounds if bound is not None)


def texts_of(value: object) -> Iterator[str]:
    """How a value is written into a variable: lists in both ways."""
    if isinstance(value, list | tuple):
        yield ", ".join(value)
    yield value if isinstance(value, str) else json.dumps(value)


def test_every_valid_value_is_taken_from_a_variable() -> None:
    """Any key takes as text what it takes from a file: numbers, also of a few choices, truth values, lists, tables."""
    tried, wrong = set(), []
    rest = document()
    for key, value in valid_values():
        section, _, name = key.partition(".")
        model = SECTIONS[section]
        expected = getattr(model.model_validate({**rest.get(section, {}), name: value}), name)
        for text in texts_of(value):
            source = read_document(rest, SECTIONS)
            read_environment({variable_of(key): text}, SECTIONS, source)
            found = validate(section, model, source)
            if found is None or getattr(found, name) != expected:
                wrong.append((key, text, source.faults))
        tried.add(key)
    assert wrong == []
    assert tried == KEYS


@pytest.mark.parametrize(
    "name", ["STREAM__MAX_ATTEMPTS", "STREAM__max_attempts", "stream__MAX_ATTEMPTS", "Stream__Max_Attempts"]
)
def test_letters_of_either_case(name: str) -> None:
    """A variable names its key in letters of either case; two that name one key are refused, whichever comes later."""
    variable = f"COMPACTOR_{name}"
    assert parse_settings(document(), {variable: "9"}).stream.max_attempts == 9
    other = "COMPACTOR_STREAM__MAX_attempts"
    (fault,) = faults_of(document(), {variable: "9", other: "8"})
    assert "sets stream.max_attempts, as does COMPACTOR_" in fault


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("STREAM__MAX_ATTEMPTS2", "unknown key stream.max_attempts2"),
        ("STREAM2__MAX_ATTEMPTS", "unknown section stream2"),
        ("STREAM__MAX-ATTEMPTS", "unknown key stream.max-attempts"),
        ("STREAM__MAX_ATTEMPTS", "stream.max_attempts: 0 (from COMPACTOR_STREAM__MAX_ATTEMPTS)"),
        ("stream__max_attempts", "stream.max_attempts: 0 (from COMPACTOR_stream__max_attempts)"),
        ("__", "unknown section"),
    ],
)
def test_an_argument_says_what_the_variable_says(name: str, words: str) -> None:
    """An argument of the job is taken or refused exactly as the variable of its name is; none is dropped."""
    variable = f"COMPACTOR_{name}"
    for argv in ([f"--{variable}", "0"], [f"--{variable}=0"]):
        arguments = overriding(job_arguments(["glue_entry.py", "--CONFIG", "c.toml", *argv]))
        assert arguments == {variable: "0"}
        assert faults_of(document(), arguments) == faults_of(document(), {variable: "0"})
    assert words in " ".join(faults_of(document(), {variable: "0"}))


def test_variables_that_are_no_overrides_are_let_be() -> None:
    """Only `COMPACTOR_<SECTION>__<KEY>` is an override."""
    env = {
        "COMPACTOR_CONFIG": "x",
        "COMPACTOR_": "",
        "OTHER__X": "y",
        "XCOMPACTOR_PATHS__OUTPUT": "z",
        "PATHS__OUTPUT": "!",
    }
    assert parse_settings(document(), env) == parse_settings(document())


@pytest.mark.parametrize(
    ("state", "claims", "enough"),
    [("s3://own/state", "", False), ("s3://own/state", "table", True), ("/s", "", True), ("/s", "table", True)],
)
def test_claims_are_asked_for_only_when_they_are_needed(state: str, claims: str, enough: bool) -> None:
    """A state on S3 needs a table for claims, which is checked by planning, not at load."""
    local = {} if state.startswith("s3") else {"paths__manifests": "/m", "paths__output": "/o"}
    settings = parse_settings(document(paths__state=state, builder__claims=claims, **local))
    if enough:
        settings.require_claims()
    else:
        with pytest.raises(SettingsError, match="expected a DynamoDB table"):
            settings.require_claims()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[paths]\nmanifests = \n", "line 2"),
        (b"[paths]\n[paths]\n", "line 2"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b"a = " + b"[" * 100_000, "expected TOML"),
        (b"a = " + b"9" * 5000, "expected TOML"),
    ],
)
def test_a_file_that_is_not_toml(tmp_path: Path, content: bytes, expected: str) -> None:
    """A file that cannot be read as TOML is named, with the place of the trouble."""
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_settings(path, {})
    assert caught.value.faults[0].startswith(f"{path}: ")
    assert expected in caught.value.faults[0]


@pytest.mark.parametrize("key", ["queue_url", "dead_letter_queue_url"])
def test_the_job_may_not_take_the_events_of_files(key: str) -> None:
    """A queue of manifests, whose messages the job deletes unread, is none of the queues of files."""
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/files"
    with pytest.raises(SettingsError, match=f"stream.queue_url: .*{url}.* -> expected a queue other than"):
        parse_settings(document(**{f"control__{key}": url}, stream__queue_url=url))


@pytest.mark.parametrize("name", ["missing.toml", "missing/settings.toml", "", "\0"])
def test_a_file_that_is_not_there(tmp_path: Path, name: str) -> None:
    """A file that is missing, or is none, is named."""
    with pytest.raises(SettingsError, match="expected a settings file"):
        load_settings(tmp_path / name, {})


def test_variables_alone_are_enough() -> None:
    """Without a file, the environment can say it all."""
    env = {
        "COMPACTOR_PATHS__MANIFESTS": "/m", "COMPACTOR_PATHS__OUTPUT": "/o", "COMPACTOR_PATHS__STATE": "/s",
        "COMPACTOR_INPUT__ALLOWED_PREFIXES": "/raw",
    }  # fmt: skip
    assert load_settings(None, env).input.allowed_prefixes == ("/raw",)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_settings_load_and_say_what_they_decide(name: str) -> None:
    """Each settings file that ships can be used, and has no key that says what its default says."""
    assert isinstance(load_settings(CONFIG / name, {}), Settings)
    for section, table in tomllib.loads((CONFIG / name).read_text()).items():
        for key, value in table.items():
            default = SECTIONS[section].model_fields[key].get_default(call_default_factory=True)
            assert (tuple(value) if isinstance(value, list) else value) != default, f"{section}.{key}"


def test_shipped_settings_differ_in_values_only() -> None:
    """The files that ship pass on the same Spark properties, and no two share a place."""
    loaded = [load_settings(CONFIG / name, {}) for name in SHIPPED]
    assert len({tuple(settings.spark.conf) for settings in loaded}) == 1
    own = [place for settings in loaded for place in settings.paths.model_dump().values()]
    assert len(set(own)) == len(own)


SCALARS = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), st.datetimes(), st.times(),
    st.sampled_from(["s3://own/a", "s3://own/a/b", "/a", "a", "full", "declared", "snappy", "{date}"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)
TABLES = {
    name: st.fixed_dictionaries({}, optional=dict.fromkeys(model.model_fields, VALUES)) | VALUES
    for name, model in SECTIONS.items()
}
VARIABLES = st.dictionaries(
    st.sampled_from(sorted(KEYS)).map(lambda key: "COMPACTOR_" + key.upper().replace(".", "__")) | st.text(), st.text()
)


@given(st.fixed_dictionaries({}, optional=TABLES) | st.dictionaries(st.text(), VALUES), VARIABLES)
def test_any_document_gives_settings_or_faults(made: dict[str, Any], env: dict[str, str]) -> None:
    """Whatever is in the file and the environment, the outcome is settings or lines that can be shown."""
    try:
        made_settings, faults = parse_settings(made, env), ()
    except SettingsError as refused:
        made_settings, faults = None, refused.faults
    assert (made_settings is None) is bool(faults)
    assert all(fault.encode() and "\n" not in fault for fault in faults)


def test_settings_kept_in_s3(aws_endpoint: str) -> None:
    """Settings may be an object in S3; one that is not there, or no TOML, is told of with its place."""
    env = {"COMPACTOR_aws__endpoint_url": aws_endpoint, "AWS_REGION": REGION}
    s3 = s3_client(REGION, aws_endpoint)
    make_buckets(["settings"], region=REGION, endpoint_url=aws_endpoint)
    s3.put_object(Bucket="settings", Key="c.toml", Body=(CONFIG / "dev.toml").read_bytes())
    s3.put_object(Bucket="settings", Key="bad.toml", Body=b"[paths")
    assert settings_at("s3://settings/c.toml", env).metrics.environment == "dev"
    with pytest.raises(SettingsError, match=r"s3://settings/none\.toml: no such object"):
        settings_at("s3://settings/none.toml", env)
    with pytest.raises(SettingsError, match=r"s3://settings/bad\.toml: .* -> expected TOML"):
        settings_at("s3://settings/bad.toml", env)


def test_a_job_is_of_the_shard_that_it_is_told() -> None:
    """All streams that it works on are, too."""
    settings = parse_settings(document()).of_shard("2/4")
    assert (str(settings.shard), settings.run_name) == ("2/4", "compactor-shard-2")
    assert (parse_settings(document()).shard, settings.of_shard("1/4").run_name) == (None, "compactor")
    assert settings.by_shard == (settings,)
    with pytest.raises(SettingsError, match=r'--shard: "5/4" -> expected "1/4" to "4/4", as there are 4 shards'):
        settings.of_shard("5/4")
    with pytest.raises(SettingsError, match=r'--shard: "two" -> expected a shard such as "2/4", the second of four'):
        settings.of_shard("two")
