"""Which settings a call keeps, and what it leaves of those of other calls."""

import dataclasses
import tomllib
from pathlib import Path

import pytest

from compactor.settings.compact_paths import Options, parse_compact_paths, settings_document
from compactor.settings.settings import parse_settings
from compactor.wiring.folder import FolderSettings, folder_settings
from tests.support.harness import Harness


def first_call(source: str) -> FolderSettings:
    """A call that found nothing kept."""
    paths = parse_compact_paths(source, "/w/rows")
    document = settings_document(paths, Options(), None)
    return FolderSettings(paths, Options(), parse_settings(document), document, None)


def test_the_first_calls_of_two_sources_at_once_forget_neither() -> None:
    """Both found no settings; the later one adds its source to what the faster one wrote."""
    harness = Harness()
    calls = [first_call(source) for source in ("/w/one", "/w/other", "/w/one")]
    for each in calls:
        each.keep(harness.store, harness.app().runs)
    kept = tomllib.loads(harness.store.read(calls[0].paths.settings_file).decode())
    assert kept["input"]["allowed_prefixes"] == ["/w/one", "/w/other"]


def test_unchanged_settings_are_not_written_again() -> None:
    """The comments of a user who edited it stay."""
    harness = Harness()
    call = first_call("/w/one")
    harness.store.put(call.paths.settings_file, b"# edited")
    dataclasses.replace(call, kept=call.document).keep(harness.store, harness.app().runs)
    assert harness.store.read(call.paths.settings_file) == b"# edited"


@pytest.mark.parametrize("state", [None, "own"])
@pytest.mark.parametrize(
    ("env", "expected"), [({}, ()), ({"COMPACTOR_SCHEMA__METADATA_COLUMNS": "file_date"}, ("file_date",))]
)
def test_rows_have_no_metadata_columns_by_default(
    tmp_path: Path, state: str | None, env: dict[str, str], expected: tuple[str, ...]
) -> None:
    """They are as in the input, unless a setting asks for more."""
    paths = parse_compact_paths(str(tmp_path / "raw"), str(tmp_path / "rows"), state and str(tmp_path / state))
    assert folder_settings(paths, Options(), env).settings.metadata_columns == expected
