"""What a call of `compact` remembers for DST: a later call may change nothing that says how input is read."""

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.compact_paths import CompactPaths, Options
from compactor.wiring.folder import folder_settings
from tests.support import extras
from tests.support.compacting import call, write

GROK = "%{WORD:verb} %{NOTSPACE:path}"
LONG = '[[columns]]\nname = "id"\ntype = "long"\n'
STRING = '[[columns]]\nname = "id"\ntype = "string"\n'
WITH_X = f'{LONG}[[columns]]\nname = "x"\ntype = "string"\n'
EDIT = "a different DST, or a different {} in {}.compactor/compactor.toml for later files"

# By option: the words of the first call, those of a later one, and the fault of that; empty if it is remembered.
LATER: list[tuple[str, list[str], list[str], str]] = [
    ("format", [], ["--format", "json"], ""),
    ("format", ["--format", "json"], ["--format", "json"], ""),
    ("format", ["--format", "json"], ["--format", "ndjson"], '--format ndjson: {out} has input.format = "json"'),
    ("format", ["--grok", GROK], ["--format", "ndjson"], '--format ndjson: {out} has input.format = "grok"'),
    ("grok", [], ["--grok", GROK], f'--grok {GROK}: {{out}} has input.format = "ndjson"'),
    ("grok", ["--grok", GROK], ["--grok", GROK], ""),
    ("grok", ["--grok", GROK], ["--grok", "%{WORD:verb}"], f'--grok %{{WORD:verb}}: {{out}} has input.grok = "{GROK}"'),
    ("records", [], ["--records", "a[]"], '--records a[]: {out} has input.records = ""'),
    ("records", ["--records", "a[]"], ["--records", "a[]"], ""),
    ("keep", ["--records", "a[]"], ["--keep", "x,y"], "--keep x,y: {out} has input.keep = []"),
    ("keep", ["--records", "a[]", "--keep", "x"], ["--keep", "x"], ""),
    ("hive_keys", [], ["--hive-keys"], "--hive-keys: {out} has input.hive_keys = false"),
    ("hive_keys", ["--hive-keys"], ["--hive-keys"], ""),
    ("names", [], ["--names", "exact"], '--names exact: {out} has schema.names = "safe"'),
    ("names", ["--names", "exact"], ["--names", "exact"], ""),
    ("claims", [], ["--claims", "table"], '--claims table: {out} has builder.claims = ""'),
    ("types", [], ["--types", "infer"], "--types: {out} already has columns"),
    ("types", ["--types", "infer"], ["--types", "infer"], ""),
    ("schema", ["--schema", LONG], ["--schema", WITH_X], ""),
    ("schema", ["--schema", LONG], ["--schema", STRING], "type 'string' -> expected 'long'"),
    ("exclude", [], ["--exclude", "*.csv"], ""),
    ("exclude", ["--exclude", "*.csv"], ["--exclude", "*.csv"], ""),
    ("exclude", ["--exclude", "*.csv"], ["--exclude", "*.txt"], ""),
    ("engine", [], ["--engine", "native"], ""),
    ("region", [], ["--region", "eu-west-1"], ""),
    ("endpoint_url", [], ["--endpoint-url", "http://127.0.0.1:1"], ""),
]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows"


def test_every_option_is_in_the_table() -> None:
    """An option that settings remember says here what a later call may do."""
    assert {option for option, *_ in LATER} == {each.name for each in dataclasses.fields(Options)}


@extras.NATIVE.needed
@pytest.mark.parametrize(("first", "later", "fault"), [each[1:] for each in LATER])
def test_a_later_call_is_remembered_or_refused(
    tmp_path: Path, out: Path, first: list[str], later: list[str], fault: str
) -> None:
    """Nothing is written for a refused one; what is remembered is in the summary, once."""

    def words(given: list[str]) -> list[str]:
        if given[:1] == ["--schema"]:
            (tmp_path / "types.toml").write_text(given[1])
            return ["--schema", str(tmp_path / "types.toml")]
        return given

    def content(number: int) -> bytes:
        if "--grok" in first:
            return b"GET /%d\n" % number
        return (b'{"a": [{"id": %d}]}\n' if "--records" in first else b'{"id": %d}\n') % number

    raw = tmp_path / "raw"
    raw.mkdir()
    write(raw / "a", content(1))
    result = call(raw, out, *words(first))
    assert (result.exit_code, "remembered" in result.output) == (0, False), result.output
    settings = tmp_path / "rows.compactor" / "compactor.toml"
    before = settings.read_text()
    write(raw / "b", content(2))
    result = call(raw, out, *words(later))
    if fault:
        assert (result.exit_code, fault.replace("{out}", str(out)) in " ".join(result.stderr.split())) == (2, True), (
            result.stderr
        )
        assert settings.read_text() == before
        assert call(raw, out).exit_code == 0  # as the first call read
        return
    assert result.exit_code == 0, result.output
    changed = [key for key in tomllib.loads(settings.read_text()).items() if key not in tomllib.loads(before).items()]
    assert ("remembered" in result.output) is bool(changed)
    again = call(raw, out)
    assert (again.exit_code, "remembered" in again.output) == (0, False)


@pytest.mark.parametrize(
    ("options", "key"),
    [(Options(format="ndjson"), "input.format"), (Options(hive_keys=False), "input.hive_keys")],
)
def test_a_refusal_says_how_to_change_it_on_purpose(out: Path, options: Options, key: str) -> None:
    """By an edit of the settings, where files that are read in two ways do no harm."""
    paths = CompactPaths("/raw", str(out), f"{out}.compactor")
    home = Path(paths.home)
    home.mkdir()
    Path(paths.settings_file).write_text('[input]\nformat = "json"\nhive_keys = true\n')
    with pytest.raises(SettingsError) as caught:
        folder_settings(paths, options, {})
    [fault] = caught.value.faults
    assert fault.endswith(f" -> expected the same value, {EDIT.format(key, out)}")


def test_of_two_first_calls_the_slower_one_is_refused(out: Path) -> None:
    """If it asks for something else than the faster one has kept."""
    paths = CompactPaths("/raw", str(out), f"{out}.compactor")
    faster, slower = (folder_settings(paths, each, {}) for each in (Options(), Options(names="exact")))
    store: Any = pytest.importorskip("compactor.adapters.local.store").LocalStore()
    runs: Any = None
    faster.keep(store, runs)
    with pytest.raises(SettingsError, match=r"schema\.names"):
        slower.keep(store, runs)
