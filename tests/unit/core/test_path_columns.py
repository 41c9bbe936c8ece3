"""Promises of path columns: what folders such as `country=DE` give, and what a manifest may say of it."""

from datetime import UTC, datetime

import orjson
import pytest

from compactor.core.documents.manifest import Manifest
from compactor.core.documents.manifest_parsing import ManifestRules, parse_manifest
from compactor.core.errors import ManifestError, SettingsError
from compactor.core.inputs.source_places import MAX_PATH_COLUMNS, path_columns
from compactor.settings.settings import parse_settings


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://b/year=2026/country=DE/x=1.ndjson", {"year": "2026", "country": "DE"}),
        ("/in/city=S%C3%A3o%20Paulo/a%3Db=c/x", {"city": "São Paulo", "a=b": "c"}),
        ("/in/a=1=2/b=/=c/a=3/x", {"a": "3", "b": ""}),
        ("/in/country=__HIVE_DEFAULT_PARTITION__/x", {}),
        ("/in/a=%FF/\udcff=1/x", {"a": "%FF"}),
        ("s3://a=b/x", {}),
        ("/in/x", {}),
    ],
)
def test_folders_give_columns(uri: str, expected: dict[str, str]) -> None:
    """Keys and values are decoded as Hive encodes them; buckets and names of files give none."""
    assert path_columns(uri) == expected


def test_their_number_is_bounded() -> None:
    """A path of many folders gives the first ones."""
    uri = "/in/" + "".join(f"k{number}=v/" for number in range(50)) + "x"
    assert list(path_columns(uri)) == [f"k{number}" for number in range(MAX_PATH_COLUMNS)]


def parsed(hive_keys: bool, **of_file: object) -> Manifest:
    document = {"version": 1, "manifest_id": "m", "date": "2026-01-05", "files": [{"uri": "/in/a=1/x", **of_file}]}
    return parse_manifest(
        orjson.dumps(document),
        uri="/m/m.json",
        modified_at=datetime(2026, 1, 5, tzinfo=UTC),
        allowed_prefixes=["/in"],
        rules=ManifestRules(hive_keys=hive_keys),
    )


def test_a_manifest_says_what_it_knows() -> None:
    """Columns on record count, whatever the settings are now; others come from the path if the settings say so."""
    assert parsed(False).files[0].path_columns is None
    assert parsed(True).files[0].path_columns == {"a": "1"}
    assert parsed(True, path_columns={"b": "2"}).files[0].path_columns == {"b": "2"}
    assert parsed(False, path_columns={"b": "2"}).files[0].path_columns == {"b": "2"}
    again = orjson.loads(parsed(True, dated_by="path").to_json())["files"][0]
    assert again == {"uri": "/in/a=1/x", "dated_by": "path", "path_columns": {"a": "1"}}
    assert parsed(False, dated_by="no rule").files[0].dated_by is None


def test_the_setting_is_a_boolean() -> None:
    """A variable sets it as text; anything else is a fault that says what was expected."""
    document = {"paths": {"manifests": "/m", "output": "/o", "state": "/s"}, "input": {"allowed_prefixes": ["/in"]}}
    assert parse_settings(document, {"COMPACTOR_INPUT__HIVE_KEYS": "true"}).manifest_rules().hive_keys
    with pytest.raises(SettingsError, match="expected true or false"):
        parse_settings(document, {"COMPACTOR_INPUT__HIVE_KEYS": "yes"})


@pytest.mark.parametrize("found", [[], {"a": 1}, {"a": None}, {"a": "x" * 5000}, {str(n): "" for n in range(17)}, "a"])
def test_a_manifest_with_other_columns_is_refused(found: object) -> None:
    """Columns come from outside, so their number and length are bounded."""
    with pytest.raises(ManifestError, match=r"files\[0\].path_columns"):
        parsed(False, path_columns=found)
