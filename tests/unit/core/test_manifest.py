"""Promises of reading manifests: each is accepted as one frozen value, or refused with a reason that can be counted."""

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core.documents import manifest_parsing
from compactor.core.documents.manifest import REASONS, Manifest, ManifestFile
from compactor.core.documents.manifest_parsing import DEFAULT_RULES, ManifestRules, parse_manifest
from compactor.core.errors import ManifestError
from tests.support.sampling import few

URI = "s3://b/manifests/2025-12-20-name.json"
MODIFIED_AT = datetime(2025, 12, 31, 23, 59, 1, tzinfo=UTC)
FILE = {"uri": "s3://raw/in/x.ndjson", "size_bytes": 3, "etag": "9b2c", "event_time": "2025-12-21T10:14:03Z"}
VERSION_1: dict[str, Any] = {
    "version": 1,
    "manifest_id": "2025-12-21-00f3a9c2",
    "date": "2025-12-21",
    "created_at": "2025-12-21T10:15:00Z",
    "files": [FILE],
}
RANGE = {"uri": "kafka://main/orders/3?from=12&to=50", "size_bytes": 0, "etag": "AbC-_1"}
GAP = {"uri": "kinesis://main/orders/shardId-000000000003?after=7&before=21", "size_bytes": 0, "etag": "AbC-_1"}
WITH_RANGE = {**VERSION_1, "files": [RANGE, FILE]}
ALLOWED = ["s3://raw/in", "/data/raw/", "kafka://main/orders"]
NOT_FROM_ITS_BYTES = {
    "forbidden",
    "too_big",
    "id_already_used",
    "hidden_name",
    "nested",
    "not_planned",
    "retries_exhausted",
}


def parse(document: Any, *, uri: str = URI, rules: ManifestRules = DEFAULT_RULES) -> Manifest:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse_manifest(data, uri=uri, modified_at=MODIFIED_AT, allowed_prefixes=ALLOWED, rules=rules)


def with_key(key: str, value: Any) -> dict[str, Any]:
    return {**VERSION_1, key: value}


def with_file(**changes: Any) -> dict[str, Any]:
    return with_key("files", [{**FILE, **changes}])


def located(*uris: Any) -> dict[str, Any]:
    return {"fileLocations": [{"URIPrefixes": list(uris)}]}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


REFUSED: list[tuple[str, Any]] = [
    ("empty", b""),
    ("empty", b" \r\n\t "),
    ("not_json", b"{"),
    ("not_json", b"[" * 100_000),
    ("not_json", b"[" * 100_000 + b"]" * 100_000),
    ("not_json", b'{"version":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("not_json", bytes(range(256))),
    ("not_json", b"\xef\xbb\xbf{}"),
    ("not_json", b"\x1f\x8b\x08\x00\x00"),
    ("not_json", b'{"version": 1} {"version": 1}'),
    ("not_json", b'{"version": NaN}'),
    ("not_json", b'{"version": 1, "date": "\xff"}'),
    ("not_json", b'{"version": 1, "date": "\\ud800"}'),
    ("not_json", json.dumps(VERSION_1).encode("utf-16")),
    ("not_an_object", b"[]"),
    ("not_an_object", b"null"),
    ("not_an_object", b"1"),
    ("not_an_object", b'"s3://raw/in/x"'),
    ("not_an_object", b"[" * 1000 + b"]" * 1000),
    ("unknown_version", b'{"version":' + b"[" * 1015 + b"]" * 1015 + b"}"),
    ("bad_file", b'{"fileLocations":' + b"[" * 1015 + b"]" * 1015 + b"}"),
    ("unknown_form", b"{}"),
    ("unknown_form", {"files": [FILE]}),
    ("unknown_form", {"Version": 1}),
    *(
        ("unknown_version", with_key("version", value))
        for value in (9, 0, -1, 2**70, 1.5, True, False, "1", None, [], [1], {}, nested(900))
    ),
    *(
        ("bad_id", with_key("manifest_id", value))
        for value in (
            "", ".", "..", ".x", "_x", "a/b", "../x", "a\\b", "a b", "a\n", "ü", "x" * 201, "x.reason", 7, None,
        )
    ),
    ("bad_id", {key: value for key, value in VERSION_1.items() if key != "manifest_id"}),
    *(
        ("bad_date", with_key("date", value))
        for value in (
            "2025-13-40", "2025-02-29", "20251221", "2025-W51-7", "2025-12-21T00:00", " 2025-12-21", "", 5, None,
        )
    ),
    *(
        ("bad_uri", {**WITH_RANGE, "files": [{**RANGE, **changes}]})
        for changes in (
            {"uri": "kafka://main/orders/3"},
            {"uri": "kafka://main/orders/3?from=50&to=12"},
            {"uri": "kafka://main/orders/03?from=12&to=50"},
            {"etag": None},
            {"etag": '""'},
            {"size_bytes": None},
        )
    ),
    *(
        ("bad_uri", {**WITH_RANGE, "files": [{**GAP, **changes}]})
        for changes in (
            {"uri": "kinesis://main/orders"},
            {"uri": "kinesis://main/orders/shardId-000000000003?sequence=7"},
            {"uri": "kinesis://main/orders/../shardId-000000000003?after=7&before=21"},
            {"uri": "kinesis://main/orders/shardId-000000000003?after=21&before=7"},
            {"uri": "kinesis://main/orders/shardId-000000000003?after=7#/../../../s3://raw/secret/x"},
            {"uri": "file://kinesis://main/orders/shardId-000000000003?after=7"},
            {"etag": None},
            {"size_bytes": None},
            {"size_bytes": 10**18},
        )
    ),
    ("bad_uri", located(GAP["uri"])),
    ("outside_allowed_prefixes", {**WITH_RANGE, "files": [GAP, {**FILE, "uri": "s3://raw/secret/x.ndjson"}]}),
    ("duplicate_uri", {**WITH_RANGE, "files": [GAP, GAP]}),
    ("duplicate_uri", {**WITH_RANGE, "files": [RANGE, RANGE]}),
    ("bad_uri", located(RANGE["uri"])),
    *(("no_files", with_key("files", value)) for value in ([], {}, None, "s3://raw/in/x", 3)),
    ("no_files", {"fileLocations": []}),
    ("no_files", {"fileLocations": None}),
    ("no_files", {"fileLocations": {"URIPrefixes": ["s3://raw/in/x"]}}),
    ("no_files", located()),
    ("too_many_files", with_key("files", [{"uri": f"s3://raw/in/{number}"} for number in range(100_001)])),
    ("too_many_files", located(*(f"s3://raw/in/{number}" for number in range(100_001)))),
    ("too_many_files", {"fileLocations": located("s3://raw/in/x")["fileLocations"] * 100_001}),
    ("too_many_files", b'{"version":1,"x":[' + b"[]," * 1_000_000 + b"[]]}"),
    *(("bad_file", with_key("files", [value])) for value in (None, "s3://raw/in/x", [], {}, 1, nested(900))),
    *(("bad_file", with_file(uri=value)) for value in (None, 7, ["s3://raw/in/x"])),
    *(("bad_file", with_file(size_bytes=value)) for value in ("3", -1, 1.5, True, 2**70, -(2**70), [3], nested(900))),
    *(("bad_file", with_file(etag=value)) for value in (7, True, ["9b2c"])),
    *(("bad_file", with_file(etag=value)) for value in ("a\r\nx: y", "a\nb", "\0", "\x7f", "é", "\u2028", "e" * 1025)),
    *(("bad_file", with_file(event_time=value)) for value in ("yesterday", "", 1734775200, True, [], "2025-13-01")),
    ("bad_file", with_file(event_time="0001-01-01T00:00:00+14:00")),
    ("bad_file", with_file(event_time="9999-12-31T23:59:59-14:00")),
    ("bad_file", with_key("created_at", "noon")),
    ("bad_file", with_key("created_at", "0001-01-01T00:00:00+14:00")),
    ("bad_file", located(7)),
    ("bad_file", {"fileLocations": ["s3://raw/in/x"]}),
    ("bad_file", {"fileLocations": [{"URIPrefixes": "s3://raw/in/x"}]}),
    ("bad_file", {"fileLocations": [{"uriprefixes": ["s3://raw/in/x"]}]}),
    *(
        ("bad_uri", with_file(uri=value))
        for value in (
            "", "x", "raw/in/x", "s3:/raw/in/x", "s3://raw", "s3://raw/", "s3:///in/x", "s3://raw/in/", "S3://raw/in/x",
            "/data/raw/", "/data/raw/a\0b", "file://data/raw/x", "file:/data/raw/x", "http://raw/in/x", "hdfs://raw/in/x",
        )
    ),
    *(
        ("bad_uri", with_file(uri=value))
        for value in (
            f"s3://raw/in/{'x' * 1022}", f"s3://raw/in/{'ü' * 511}", f"s3://{'b' * 256}/x", f"/data/raw/{'x' * 4087}",
        )
    ),
    *(
        ("outside_allowed_prefixes", with_file(uri=value))
        for value in (
            "s3://other/in/x", "s3://raw/x", "s3://raw/inner/x", "s3://raw/in/../x", "s3://raw/in/./x", "s3://raw/in/..",
            "/etc/passwd", "/data/raw/../../etc/passwd", "/data/rawer/x", "file:///etc/passwd",
        )
    ),
    ("outside_allowed_prefixes", located("s3://raw/in/x", "s3://raw/in/../../etc")),
    ("duplicate_uri", with_key("files", [FILE, {"uri": FILE["uri"], "etag": "other"}])),
    ("duplicate_uri", with_key("files", [FILE, {"uri": "s3a://raw/in/x.ndjson"}])),
    ("duplicate_uri", located("/data/raw/x", "file:///data/raw/x")),
    ("duplicate_uri", located("/data/raw/x", "/data/raw//x")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "document"), REFUSED, ids=[f"{n}-{reason}" for n, (reason, _) in enumerate(REFUSED)]
)
def test_what_is_wrong_has_its_reason(reason: str, document: Any) -> None:
    """A manifest that cannot be accepted names its reason, says where, what was expected, and stays short."""
    with pytest.raises(ManifestError) as caught:
        parse(document)
    assert caught.value.reason == reason
    assert caught.value.message.startswith(URI)
    assert "expected" in caught.value.message or reason in {"unknown_form", "outside_allowed_prefixes"}
    assert len(caught.value.message) < 1000


def test_every_reason_has_a_case() -> None:
    """No reason that a manifest's bytes can give is left without a case."""
    assert {reason for reason, _ in REFUSED} == set(REASONS) - NOT_FROM_ITS_BYTES


def test_version_1() -> None:
    """A manifest of version 1 comes out as it was written."""
    assert parse(VERSION_1) == Manifest(
        manifest_id="2025-12-21-00f3a9c2",
        date="2025-12-21",
        created_at=datetime(2025, 12, 21, 10, 15, tzinfo=UTC),
        files=(
            ManifestFile(
                uri="s3://raw/in/x.ndjson",
                size_bytes=3,
                etag="9b2c",
                event_time=datetime(2025, 12, 21, 10, 14, 3, tzinfo=UTC),
            ),
        ),
    )


def test_ranges() -> None:
    """A manifest may name them beside files."""
    assert [file.uri for file in parse(WITH_RANGE).files] == [RANGE["uri"], FILE["uri"]]


def test_gaps_are_named_wherever_input_may_come_from() -> None:
    """Nothing is read of them, so that what was landed is compacted although the allowed prefixes changed."""
    found = parse({**WITH_RANGE, "files": [GAP, FILE]})
    assert [file.uri for file in found.files] == [GAP["uri"], FILE["uri"]]


def test_what_may_be_left_out() -> None:
    """Size, version and times are optional, a null is the same as nothing, and unknown fields are let be."""
    document = {**VERSION_1, "created_at": None, "note": 1, "files": [{"uri": FILE["uri"], "etag": None, "x": {}}]}
    manifest = parse(document)
    assert manifest.created_at == MODIFIED_AT
    assert manifest.files == (ManifestFile(uri="s3://raw/in/x.ndjson"),)


@pytest.mark.parametrize(
    ("written", "etag"), [('"9b2c"', "9b2c"), ("9b2c-12", "9b2c-12"), ("", None), ('""', None), (None, None)]
)
def test_quotes_round_an_etag(written: str | None, etag: str | None) -> None:
    """An ETag is the same with the quotes that S3 puts round it, and an empty one is none."""
    assert parse(with_file(etag=written)).files[0].etag == etag


def test_as_many_files_as_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on files is exact, in either form, however many fields each has."""
    monkeypatch.setattr(manifest_parsing, "MAX_MANIFEST_FILES", 1000)
    files = [{**FILE, "uri": f"s3://raw/in/{number}"} for number in range(1001)]
    uris = [each["uri"] for each in files]
    assert len(parse(with_key("files", files[:1000])).files) == 1000
    assert len(parse(located(*uris[:1000])).files) == 1000
    for document in (with_key("files", files), located(*uris)):
        with pytest.raises(ManifestError, match=r"names 1001 files.*expected at most 1000") as caught:
            parse(document)
        assert caught.value.reason == "too_many_files"


@pytest.mark.parametrize(
    "entry", few([b'{"uri":"/data/raw/%d"}', b'"/data/raw/%d"', b"[]", b'{"a":{}}', b"[[0]]", b"0"], 3)
)
def test_a_manifest_of_millions_of_files_costs_nothing(entry: bytes) -> None:
    """Very many short files, or as much other JSON, are refused before they take time and memory."""
    entries = b",".join(entry % number if b"%d" in entry else entry for number in range(1_000_000))
    head = b'{"version":1,"manifest_id":"m","date":"2026-01-02","files":['
    data = head + entries + b"]}"
    tracemalloc.start()
    try:
        with pytest.raises(ManifestError) as caught:
            parse(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.reason == "too_many_files"


def test_the_longest_files_fit_into_the_longest_manifest() -> None:
    """A thousand of the longest files do; a document of more than 64 MiB is refused."""
    longest = {**FILE, "etag": "e" * 1024, "event_time": "2025-12-21T10:14:03.123456Z"}
    files = [{**longest, "uri": f"s3://raw/in/{number:01021d}"} for number in range(1000)]
    assert len(parse(with_key("files", files)).files) == 1000
    with pytest.raises(ManifestError) as caught:
        parse(b" " * (64 * 1024 * 1024 + 1))
    assert caught.value.reason == "too_big"


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("1999-12-31", "2025-12-31"),
        ("2000-01-01", "2000-01-01"),
        ("2026-01-31", "2026-01-31"),
        ("9999-12-31", "2025-12-31"),
    ],
)
def test_a_date_outside_the_window_is_the_day_of_arrival(day: str, expected: str) -> None:
    """A manifest whose date, or whose files' date, cannot be right gets the day of its arrival, and says so."""
    for document in (with_key("date", day), located(f"s3://raw/in/{day}-x")):
        manifest = parse(document)
        assert (manifest.date, manifest.ignored_date) == (expected, "" if day == expected else day)
        assert b"ignored_date" not in manifest.to_json()


@pytest.mark.parametrize("size_bytes", [0, 1, 2**63 - 1, 2**64 - 1])
def test_sizes(size_bytes: int) -> None:
    """A size may be any whole number that 64 bits hold."""
    assert parse(with_file(size_bytes=size_bytes)).files[0].size_bytes == size_bytes


@pytest.mark.parametrize(
    "name",
    [
        "日本語.ndjson",
        "\U0001f600",
        "a b",
        "a%20b",
        "a+b",
        "a*b",
        "a?b",
        "[a]",
        "{a}",
        "_x",
        ".x",
        "a:b",
        "...",
        "a\\b",
        "#",
    ],
)
def test_names_are_literal(name: str) -> None:
    """Whatever a file is called is kept, character by character."""
    for document in (with_file(uri=f"s3://raw/in/{name}"), located(f"s3://raw/in/{name}")):
        assert parse(document).files[0].uri == f"s3://raw/in/{name}"


@pytest.mark.parametrize(
    ("uri", "files", "day"),
    [
        (URI, ["s3://raw/in/x", "s3://raw/in/2025-11-01-y"], "2025-11-01"),
        (URI, ["s3://raw/in/2025-10-01/2025-11-01-y"], "2025-11-01"),
        (URI, ["s3://raw/in/2025-10-01/y"], "2025-10-01"),
        (URI, ["s3://raw/in/12025-12-21-y"], "2025-12-20"),
        (URI, ["s3://raw/in/y"], "2025-12-20"),
        ("s3://b/2025-01-01/name.json", ["s3://raw/in/y"], "2025-12-31"),
    ],
)
def test_the_date_of_file_locations(uri: str, files: list[str], day: str) -> None:
    """Without a date of its own a manifest takes its files' first, else its name's, else its object's."""
    manifest = parse(located(*files), uri=uri)
    assert manifest.date == day
    assert [file.uri for file in manifest.files] == files
    assert manifest.created_at == MODIFIED_AT


def test_several_file_locations_are_one_list() -> None:
    """All entries count, in their order, and the id is the object's name."""
    document = {
        "fileLocations": [
            {"URIPrefixes": ["s3://raw/in/b"]},
            {"URIPrefixes": []},
            located("/data/raw/a")["fileLocations"][0],
        ]
    }
    manifest = parse(document)
    assert [file.uri for file in manifest.files] == ["s3://raw/in/b", "/data/raw/a"]
    assert manifest.manifest_id == "2025-12-20-name"


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00Z", "0999-05-05T05:05:05+05:30", "9999-12-31T23:59:59Z", "2025-12-21"]
)
def test_times_survive_being_written(moment: str) -> None:
    """Any time that is accepted can be written and read again."""
    manifest = parse({**with_file(event_time=moment), "created_at": moment})
    assert parse(manifest.to_json()) == manifest


@pytest.mark.parametrize("found", ["yesterday", 5, [], {}, "9999-12-31T23:59:59-14:00", None])
def test_a_key_of_another_program(found: object) -> None:
    """What other writers keep under the name of our own key is no fault."""
    assert parse(with_key("listed_at", found)).listed_at is None
    assert parse(with_key("listed_at", "2025-12-21T10:00:00Z")).listed_at == datetime(2025, 12, 21, 10, tzinfo=UTC)


@pytest.mark.parametrize("found", ["e2", 5, [], {}, ["e2", 5], ["a\nb"], [["e2"]], ["e" * 1025], None])
def test_other_versions(found: Any) -> None:
    """A file may list the ETags of other versions; anything else under that key is of another program."""
    expected = () if found == [] else None
    assert parse(with_file(other_etags=found)).files[0].other_etags == expected
    [file] = parse(with_file(etag="e1", other_etags=["e2", "e3"])).files
    assert [each.etag for each in file.versions] == ["e1", "e2", "e3"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(min_size=1).map("s3://raw/in/".__add__)
FILES = st.fixed_dictionaries(
    {"uri": NAMES | JSON},
    optional={
        "size_bytes": st.integers(min_value=0, max_value=2**64 - 1) | JSON,
        "etag": st.text() | JSON,
        "event_time": st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat) | JSON,
    },
)
DOCUMENTS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {
            "version": st.just(1) | JSON,
            "manifest_id": st.just("id") | st.text(),
            "date": st.dates().map(str) | st.text(),
            "files": st.lists(FILES, max_size=3),
        },
        optional={"created_at": st.datetimes(timezones=st.none() | st.timezones()).map(datetime.isoformat) | JSON},
    ),
    st.fixed_dictionaries(
        {
            "fileLocations": JSON
            | st.lists(st.fixed_dictionaries({"URIPrefixes": st.lists(NAMES, max_size=3)}), max_size=3)
        }
    ),
)


@given(st.binary() | DOCUMENTS.map(lambda document: json.dumps(document).encode()))
def test_any_bytes_are_accepted_or_refused(data: bytes) -> None:
    """Any bytes give a manifest that can be written and read again, or a known reason, and nothing else."""
    try:
        manifest, reason = parse(data), ""
    except ManifestError as refused:
        manifest, reason = None, refused.reason
    if manifest is None:
        assert reason in REASONS
    else:
        whole_seconds = {"created_at": manifest.created_at.replace(microsecond=0)}
        written = manifest.model_copy(update={**whole_seconds, "ignored_date": ""})
        assert parse(manifest.to_json()) == written


def test_places_of_the_compactor_give_no_columns() -> None:
    """Records that it landed there are from a stream; redriven lines are told by the path of the file they are from."""
    state = "s3://b/env=prod/state/redriven/"
    files: list[dict[str, str]] = [
        {"uri": f"{state}m-1/landed/0.ndjson"},
        {"uri": f"{state}m-1/0.ndjson.gz", "source_uri": "s3://raw/in/country=DE/a"},
        {"uri": "s3://raw/in/country=FR/a"},
    ]
    document = {
        "version": 1,
        "manifest_id": "m-1",
        "date": "2025-12-20",
        "created_at": "2025-12-20T10:00:00Z",
        "files": files,
    }
    found = parse_manifest(
        json.dumps(document).encode(),
        uri=URI,
        modified_at=datetime(2025, 12, 20, tzinfo=UTC),
        allowed_prefixes=ALLOWED,
        redriven_folder=state,
        rules=ManifestRules(hive_keys=True),
    )
    assert [each.path_columns for each in found.files] == [None, {"country": "DE"}, {"country": "FR"}]
