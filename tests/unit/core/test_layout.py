"""Promises of the names and places."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.core import layout
from compactor.core.layout import Layout, ManifestKey

DAY = "2025-12-21"
# Without the pattern's look-aheads, which Hypothesis can only try its luck at.
IDS = st.from_regex(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}(-r[1-9][0-9]{0,8})?(-dup-[0-9a-f]{12})?(-r[1-9][0-9]{0,8})?", fullmatch=True
).filter(layout.MANIFEST_ID.fullmatch)
FOLDERS = st.sampled_from(["s3://bucket/prefix", "s3://bucket", "/data/place", "file:///data/place", "/data/place///"])
NUMBERS = st.integers(min_value=0, max_value=10**9)
CANONICAL = [
    ("s3://b/k", "s3://b/k"),
    ("s3a://b/k", "s3://b/k"),
    ("s3n://b/k", "s3://b/k"),
    ("file:///a/b", "/a/b"),
    ("file:////a//b", "/a/b"),
    ("/a//b", "/a/b"),
    ("/a/b/", "/a/b/"),
    ("/a://b", "/a:/b"),
    ("s3://b/a//k", "s3://b/a//k"),
    ("s3://b/a%20b+c?d*[e]{f}", "s3://b/a%20b+c?d*[e]{f}"),
    ("file://host/a", "file://host/a"),
    ("hdfs://host/a", "hdfs://host/a"),
]
WITHIN = [
    ("s3://b/raw/x", "s3://b/raw", True),
    ("s3://b/raw/x", "s3://b/raw/", True),
    ("s3a://b/raw/x", "s3://b/raw", True),
    ("s3://b/x", "s3://b", True),
    ("s3://b/rawer/x", "s3://b/raw", False),
    ("s3://b/raw", "s3://b/raw", False),
    ("s3://bb/raw/x", "s3://b", False),
    ("s3://b/raw/../secret/x", "s3://b/raw", False),
    ("s3://b/raw/./x", "s3://b/raw", False),
    ("s3://b/raw/..", "s3://b/raw", False),
    ("s3://b/raw/..x/.y/...", "s3://b/raw", True),
    ("s3://b/raw/%2e%2e/x", "s3://b/raw", True),
    ("file:///raw/x", "/raw", True),
    ("/raw/x", "file:///raw", True),
    ("/raw//x", "/raw", True),
    ("/raw/../etc/passwd", "/raw", False),
    ("/b/raw/x", "s3://b/raw", False),
    ("/anything", "/", True),
]
DATES = [
    ("2025-12-21-part-0001.ndjson", "2025-12-21"),
    ("part-2025-12-21", "2025-12-21"),
    ("a2025-12-21b", "2025-12-21"),
    ("2025-12-21-2025-12-22", "2025-12-21"),
    ("2025-13-40-2025-12-21", "2025-12-21"),
    ("2023-02-29 2024-02-29", "2024-02-29"),
    ("12025-12-21", None),
    ("2025-12-211", None),
    ("12025-12-21 2025-01-02", "2025-01-02"),
    ("2025-13-40", None),
    ("0000-01-01", None),
    ("20251221", None),
    ("2025-1-2", None),
    ("٢٠٢٥-١٢-٢١", None),
    ("", None),
]
TEMPLATES = [
    ("merged-parquet-{date}", True),
    ("date={date}", True),
    ("events/day={date}", True),
    ("{date}", True),
    ("merged-parquet", False),
    ("{date}-{date}", False),
    ("{day}", False),
    ("{}", False),
    ("{date", False),
    ("{date!r}", False),
    ("{date:>40}", False),
    ("{date:{width}}", False),
    ("{date.year}", False),
    ("/{date}", False),
    ("../{date}", False),
    ("a/../{date}", False),
    ("./{date}", False),
    ("a//{date}", False),
    ("{date}/", False),
    ("_{date}", False),
    ("a/.{date}", False),
    ("_hidden/{date}", False),
    ("{{{date}}}", False),
    ("*{date}", False),
    ("a\n{date}", False),
    ("a\\{date}", False),
    ("", False),
]


@pytest.mark.parametrize(("uri", "expected"), CANONICAL)
def test_a_place_has_one_spelling(uri: str, expected: str) -> None:
    """Spellings of one place come out the same, and a literal name is left alone."""
    assert layout.canonical(uri) == expected


@given(st.text())
def test_the_one_spelling_is_final(uri: str) -> None:
    """Spelling a spelled place again changes nothing."""
    once = layout.canonical(uri)
    assert layout.canonical(once) == once


@pytest.mark.parametrize(("uri", "prefix", "expected"), WITHIN)
def test_within_means_below(uri: str, prefix: str, expected: bool) -> None:
    """A URI is within a folder only below it, whole segments compared, and never by climbing."""
    assert layout.is_within(uri, prefix) is expected


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "c"]), min_size=1).map("/".join))
def test_climbing_is_never_within(tail: str) -> None:
    """Whatever holds a `.` or `..` segment is not within anything."""
    climbs = bool({".", ".."}.intersection(tail.split("/")))
    assert layout.is_within(f"s3://bucket/raw/{tail}", "s3://bucket/raw") is not climbs


@pytest.mark.parametrize(("text", "expected"), DATES)
def test_first_date(text: str, expected: str | None) -> None:
    """The first real day counts, not one cut out of a longer number and not a day that no calendar has."""
    assert layout.first_date(text) == expected


@pytest.mark.parametrize("digit", ["\u0663", "\U00011f50"], ids=["of old", "of Unicode 15"])
def test_other_digits_are_text(digit: str) -> None:
    """A day beside a digit of another script is found by each Python, whether its Unicode has that digit or not."""
    assert layout.first_date(f"{digit}2025-12-21{digit}") == "2025-12-21"


@given(st.text(alphabet="0123456789-/x", max_size=40))
def test_a_found_date_is_a_real_day_in_the_text(text: str) -> None:
    """What is found as a date is a day, and stands in the text."""
    found = layout.first_date(text)
    assert found is None or (layout.is_date(found) and found in text)


@pytest.mark.parametrize("name", ["2025-12-21-00f3a9c2", "a", "a.b_c-d", "A" * 160])
def test_a_valid_name_is_the_id(name: str) -> None:
    """A name that can be an id is the id."""
    assert layout.id_from_name(f"s3://b/manifests/{name}.json") == name


ODD_NAMES = [
    "", ".", "..", "_x", ".x", "-x", "a b", "a+b", "a%20b", "ü", "日本", "a\nb", "a*b", "a?b", "[a]", "a:b", "A" * 161,
    "A" * 162, "a.reason", "a..reason", "\U0001f600", "a\\b", 'a"b', "a'b", "~", "a ", " a",
]  # fmt: skip


def test_odd_names_give_valid_and_different_ids() -> None:
    """Names that cannot be ids give valid ids, no two alike."""
    ids = [layout.id_from_name(f"s3://b/manifests/{name}.json") for name in ODD_NAMES]
    assert all(layout.MANIFEST_ID.fullmatch(made) for made in ids)
    assert len(set(ids)) == len(ids)


@given(st.lists(st.text().filter(lambda name: "/" not in name), min_size=2, max_size=2, unique=True))
def test_any_two_names_give_two_valid_ids(names: list[str]) -> None:
    """Whatever two manifests are called, their ids are valid and differ."""
    one, other = (layout.id_from_name(f"s3://b/manifests/{name}.json") for name in names)
    assert layout.MANIFEST_ID.fullmatch(one)
    assert one != other


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        ".a",
        "_a",
        "-a",
        "a/b",
        "a\\b",
        "a b",
        "a\n",
        "a\0",
        "ü",
        "a" * 201,
        "a.reason",
        "٢",
        "a" * 201 + "-r1",
    ],
)
def test_what_cannot_be_an_id(text: str) -> None:
    """An id never leaves its folder, is never hidden, and never looks like another one's reason."""
    assert not layout.MANIFEST_ID.fullmatch(text)


def keys_of(places: Layout, manifest_id: str, number: int) -> dict[str, list[str]]:
    """Every place that is built from a key, by the prefix that it belongs below."""
    key = ManifestKey(DAY, manifest_id)
    return {
        places.manifests: [places.manifest(manifest_id)],
        places.output: [places.output_file(key, number)],
        places.state: [
            places.archived_manifest(key),
            places.failed_manifest(manifest_id),
            places.failure_reason(manifest_id),
            places.accepted(manifest_id),
            places.open_marker(manifest_id),
            places.attempt(key, number),
            places.attempt_failure(key, number),
            places.outcome(key),
            places.rejects_file(key, number),
            places.done(key),
            places.staging_of_attempt(manifest_id, number) + "part.parquet",
        ],
    }


@given(FOLDERS, IDS, NUMBERS)
def test_every_key_is_below_its_folder(root: str, manifest_id: str, number: int) -> None:
    """No id takes a key out of the prefix that it belongs to, and no two keys of a manifest are one."""
    places = Layout(manifests=f"{root}/m", output=f"{root}/o", state=f"{root}/s")
    keys = keys_of(places, manifest_id, number)
    for prefix, built in keys.items():
        assert [key for key in built if not layout.is_within(key, prefix)] == []
    everything = [key for built in keys.values() for key in built]
    assert len(set(everything)) == len(everything)


@given(st.tuples(IDS, IDS).filter(lambda ids: ids[0] != ids[1]), NUMBERS, NUMBERS)
def test_two_manifests_share_no_key(ids: tuple[str, str], one: int, other: int) -> None:
    """Keys of two manifests never meet, whatever their parts and attempts."""
    places = Layout(manifests="s3://b/m", output="s3://b/o", state="s3://b/s")
    first, second = (
        {key for built in keys_of(places, manifest_id, number).values() for key in built}
        for manifest_id, number in zip(ids, (one, other), strict=True)
    )
    assert not first & second


@pytest.mark.parametrize(("template", "usable"), TEMPLATES)
def test_output_folder_templates(template: str, usable: bool) -> None:
    """A template is taken only if every day gives one visible folder below the output."""
    assert (layout.output_folder_faults(template) == []) is usable


TEMPLATE_TEXTS = st.text(alphabet="abz-=/._{}*\u00e9 ", max_size=8)


@given(TEMPLATE_TEXTS, TEMPLATE_TEXTS)
def test_any_template_is_refused_or_gives_a_folder_below_the_output(before: str, after: str) -> None:
    """Whatever is accepted as a template can be filled in, stays below the output, and tells its date back."""
    template = f"{before}{{date}}{after}"
    if layout.output_folder_faults(template) == []:
        places = Layout(manifests="/m", output="/o", state="/s", output_folder=template)
        assert layout.is_within(places.output_folder_of(DAY), "/o")
        key = ManifestKey(DAY, "m1")
        assert places.output_owner(places.output_file(key, 0)) == key


def test_most_plain_templates_are_accepted() -> None:
    """The property above holds for many templates, for many are accepted."""
    texts = ["", "a", "a-", "year=", "\u00e9 ", "a.b/c"]
    faults = {
        (before, after): layout.output_folder_faults(f"{before}{{date}}{after}")
        for before, after in product(texts, texts)
    }
    assert [pair for pair, found in faults.items() if found] == []


LONGEST = "a" * 200


@pytest.mark.parametrize("manifest_id", ["m1", LONGEST, f"{LONGEST}-r1", f"{LONGEST}-dup-0123456789ab", "a" * 184])
def test_ids_made_from_others_are_ids(manifest_id: str) -> None:
    """The id of a redrive or of a refused duplicate is an id as well, and its longest file name fits on a disk."""
    twice = layout.duplicate_id(manifest_id, "f" * 64)
    made = [
        layout.redriven_id(manifest_id, 12),
        layout.redriven_id(twice, 12),
        twice,
        layout.duplicate_id(twice, "e" * 64),
    ]
    for each in made:
        assert layout.MANIFEST_ID.fullmatch(each)
        assert len(layout.base_name(Layout("/w/m", "/w/o", "/w/s").output_file(ManifestKey(DAY, each), 99_999))) <= 255
    assert len(set(made)) == len(made)
    assert layout.duplicate_id(f"{LONGEST}-dup-0123456789ab", "f") != layout.duplicate_id(f"{LONGEST}-dup-0", "f")


@given(root=IDS, number=st.integers(min_value=1, max_value=999_999_999))
def test_redriven_ids(root: str, number: int) -> None:
    """The id of what was redriven leads back to its root, and so does the place of its record."""
    assert layout.root_id(layout.redriven_id(root, number)) == root
    place = Layout("/w/m", "/w/o", "/w/s").redrive(ManifestKey(DAY, root), number)
    assert layout.redrive_number(layout.base_name(place)) == number


@pytest.mark.parametrize("manifest_id", ["m1", "m1-r0", "m1-r01", "m1-r", "m1-r1x", "-r1", "m1-R1"])
def test_ids_that_are_their_own_root(manifest_id: str) -> None:
    """Only the exact form of a redriven id leads to another one."""
    assert layout.root_id(manifest_id) == manifest_id


@pytest.mark.parametrize("name", ["redrive-0.json", "redrive-1.txt", "attempt-1.json", "redrive-1-failed.json"])
def test_other_records_are_no_redrives(name: str) -> None:
    """No other record is taken for one of a redrive."""
    assert layout.redrive_number(name) is None


@pytest.mark.parametrize(
    ("uri", "owner"),
    [
        ("/w/s/redriven/m1-r1/run/000000.ndjson", "m1-r1"),
        ("file:///w/s//redriven/m1-r1/run/000000.ndjson", "m1-r1"),
        ("/w/s/redriven/../redriven/m1-r1/run/000000.ndjson", None),
        ("/w/s/other/m1-r1/run/000000.ndjson", None),
    ],
)
def test_redriven_owner(uri: str, owner: str | None) -> None:
    """A file of redriven lines tells which manifest it was written for."""
    places = Layout("/w/m", "/w/o", "/w/s")
    assert layout.redriven_owner(uri, places.redriven_folder) == owner
    assert places.redriven_inputs("m1-r1", "run").startswith(f"{places.redriven_folder}m1-r1/")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rejects/date=2026-01-02/m1-00000.parquet", True),
        ("redriven/m1-r1/run/00000.ndjson", True),
        ("staging/m1/1/rejects/a.parquet", True),
        ("staging/m1/1/2/repaired/a.ndjson", True),
        ("staging/m1/1/2/sample-of-1.ndjson", True),
        ("staging/out/1/rejects/a.parquet", True),
        ("staging/m1/1/out/a.parquet", False),
        ("staging/rejects/1/2/out/a.parquet", False),
        ("ledger/2026-01-02/rejects/outcome.json", False),
        ("accepted/m1.json", False),
        ("rejects", False),
    ],
)
def test_what_holds_raw_lines(name: str, expected: bool) -> None:
    """Rejects, redriven lines and copies of input are told from output and records, whatever a manifest is called."""
    assert layout.holds_raw_lines(f"/w/s/{name}", "/w/s") is expected
    assert layout.holds_raw_lines(f"/w/rejects/s/{name}", "/w/rejects/s") is expected
    assert not layout.holds_raw_lines(f"/w/o/{name}", "/w/s")


def test_each_place_is_one_thing() -> None:
    """Two names of one place would make one record be taken for another."""
    places = Layout("/w/m", "/w/o", "/w/s", "/w/staging", "/w/pending")
    members = {name: each for name, each in vars(Layout).items() if not name.startswith("__")}
    names = [name for name, each in members.items() if hasattr(each, "__get__") and not callable(each)]
    found = {name: place for name in names if isinstance(place := getattr(places, name), str)}
    assert len(found) > 30
    assert len({*found.values()}) == len(found), sorted(found.values())
