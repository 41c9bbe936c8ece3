"""Promises of the settings' words: the page and the comments of the shipped files say what the code says."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.settings.settings import SECTIONS
from compactor.settings.template import default_of, type_in_words, unit
from compactor.settings.toml import toml
from tools.settings_reference import with_comments, with_reference

ROOT = Path(__file__).parents[3]
FIELDS = {(name, key): field for name, model in SECTIONS.items() for key, field in model.model_fields.items()}
IDS = [".".join(each) for each in FIELDS]


def test_a_page_without_marks_is_refused() -> None:
    """A page that has lost its marks is not written over."""
    with pytest.raises(ValueError, match="expected a line"):
        with_reference("# Settings\n")


def test_a_comment_follows_the_code() -> None:
    """A comment that is missing or says something else is put right; values, and lines of another kind, stay."""
    text = '# mine\n[output]\ncompression = "zstd"\ntarget_file_bytes = 1_048_576  # small\n'
    assert with_comments(text) == (
        '# mine\n[output]\ncompression = "zstd"  # Parquet codec\n'
        "target_file_bytes = 1_048_576  # 1 MiB: target size of a Parquet file\n"
    )


@pytest.mark.parametrize(("section", "key"), FIELDS, ids=IDS)
def test_every_key_has_its_words(section: str, key: str) -> None:
    """Every key has a meaning of one line, a type in words, a row under its name, and a unit where it is a number."""
    field = FIELDS[section, key]
    assert field.description
    assert "\n" not in field.description
    assert type_in_words(key, field)
    assert bool(unit(key, field)) == (field.annotation in {int, float})
    page = (ROOT / "docs" / "reference-settings.md").read_text()
    rows = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    assert rows.count(f"\n| `{key}` |") == 1


@pytest.mark.parametrize(
    ("section", "key", "words"),
    [
        ("input", "max_line_bytes", "1 to 1 GiB"),
        ("output", "target_file_bytes", "1 MiB to 1 TiB"),
        ("stream", "max_attempts", "2 to 1,000"),
        ("builder", "max_wait_seconds", "> 0, up to 316,224,000 (10 years)"),
        ("control", "mode", "`always`, `on_work` or `never`"),
        ("aws", "region", "a region such as eu-central-1, or empty"),
    ],
)
def test_bounds_and_choices_are_told(section: str, key: str, words: str) -> None:
    """The type in words has the bounds and choices that the model checks."""
    assert type_in_words(key, FIELDS[section, key]) == words


@pytest.mark.parametrize(("section", "key"), FIELDS, ids=IDS)
def test_defaults_are_read_back(section: str, key: str) -> None:
    """A default that was written as TOML is the default again."""
    field = FIELDS[section, key]
    if field.is_required():
        return
    read = tomllib.loads(f"value = {toml(default_of(field))}")["value"]
    assert (tuple(read) if isinstance(read, list) else read) == default_of(field)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.recursive(
        st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(0, 1e15) | TEXTS,
        lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
        max_leaves=8,
    )
)
def test_toml_is_read_back(value: Any) -> None:
    """Whatever is written as TOML reads as what it was."""
    assert tomllib.loads(f"value = {toml(value)}")["value"] == value
