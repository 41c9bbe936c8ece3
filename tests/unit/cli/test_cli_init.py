"""Promises of `compactor init`: its file can be used as it is, and it overwrites nothing by accident."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from compactor.cli.commands.job import init as module
from compactor.cli.entry import compactor as command
from compactor.settings.settings import SECTIONS, load_settings, parse_settings
from compactor.settings.template import Answers, draft, read_answers

PLACES = {
    "local": ("/raw", "/lake", "/own"),
    "s3": ("s3://raw/events", "s3://lake/events", "s3://own"),
    "from S3 to a disk": ("s3://raw/events", "/lake", "/own"),
}
ALL_KEYS = [(name, key) for name, model in SECTIONS.items() for key in model.model_fields]


def call(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(command, ["init", *arguments], input=text, env={"COMPACTOR_CONFIG": None})


def test_a_process_writes_nothing_for_all_users(tmp_path: Path) -> None:
    """Also with an umask of 0: neither this file, which a command would then refuse, nor what its libraries write."""
    words = ["init", "settings.toml", *flags(PLACES["local"])]
    subprocess.run([sys.executable, "-m", "compactor", *words], cwd=tmp_path, umask=0, check=True, capture_output=True)
    assert (tmp_path / "settings.toml").stat().st_mode & 0o777 == 0o664


def flags(places: tuple[str, str, str]) -> list[str]:
    return [word for pair in zip(("--input", "--output", "--state"), places, strict=True) for word in pair]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user at a terminal."""
    monkeypatch.setattr(module, "is_terminal", lambda: True)


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_what_is_written_can_be_used(places: tuple[str, str, str], tmp_path: Path) -> None:
    """The file loads without a fault, and means what was answered."""
    path = tmp_path / "c.toml"
    result = call(str(path), *flags(places))
    assert result.exit_code == 0, result.stderr
    settings = load_settings(path, {})
    assert settings.input.allowed_prefixes == (places[0],)
    assert settings.paths.output == places[1]
    assert (settings.paths.manifests, settings.paths.state) == (f"{places[2]}/manifests", f"{places[2]}/state")
    assert settings.metrics.sink == ("cloudwatch" if places[2].startswith("s3") else "log")


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_every_key_is_shown_with_its_default(places: tuple[str, str, str]) -> None:
    """Every key has a line; uncommenting all of them changes nothing."""
    text = draft(Answers((places[0],), places[1], places[2]))
    shown = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    read = tomllib.loads(shown)
    assert [(name, key) for name, table in read.items() for key in table] == ALL_KEYS
    assert parse_settings(read) == parse_settings(tomllib.loads(text))


def test_next_commands_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the file is compactor.toml, and the next commands name it, the input quoted."""
    monkeypatch.chdir(tmp_path)
    result = call(*flags(("/my raw", "/lake", "/own")))
    assert result.stdout.splitlines() == [
        "Wrote compactor.toml. Next:",
        "  compactor --config compactor.toml doctor",
        "  compactor --config compactor.toml plan '/my raw'",
        "  compactor --config compactor.toml run --once",
    ]


def test_s3_says_that_claims_are_missing(tmp_path: Path) -> None:
    """On S3 the table of claims is the one setting left, and the command names it."""
    assert "set builder.claims to a DynamoDB table" in call(str(tmp_path / "c.toml"), *flags(PLACES["s3"])).stdout


def test_several_inputs(tmp_path: Path) -> None:
    """--input may be given repeatedly."""
    path = tmp_path / "c.toml"
    assert call(str(path), "--input", "/raw2", *flags(PLACES["local"])).exit_code == 0
    assert load_settings(path, {}).input.allowed_prefixes == ("/raw2", "/raw")


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """Without --force no file is overwritten, and nothing is asked first."""
    path = tmp_path / "c.toml"
    path.write_text("mine")
    refused = call(str(path), *flags(PLACES["local"]))
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert path.read_text() == "mine"
    assert call(str(path), "--force", *flags(PLACES["local"])).exit_code == 0
    assert load_settings(path, {})
    assert [each.name for each in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], ["--input PLACE", "--output PLACE", "--state PLACE"]),
        (["--input", "/raw"], ["--output PLACE", "--state PLACE"]),
        (["--output", "/lake", "--state", "/own"], ["--input PLACE"]),
        (
            flags(("ftp://x", "/lake", "/lake/own")),
            ["--input ftp://x", "--state /lake/own: expected a place that"],
        ),
        (flags(("/raw", "/raw/out", "/own*")), ["--output /raw/out", "--state /own*"]),
        (flags(("/raw", "s3://lake", "/own")), ["--state /own: expected a place on S3, like s3://lake"]),
        (["s3://own/c.toml", *flags(PLACES["local"])], ["expected a local file"]),
    ],
)
def test_wrong_usage_names_the_flags(arguments: list[str], named: list[str], tmp_path: Path) -> None:
    """Without a terminal all missing and invalid places are named at once, and nothing is written."""
    result = CliRunner().invoke(command, ["--config", str(tmp_path / "c.toml"), "init", *arguments])
    assert result.exit_code == 2
    for text in named:
        assert text in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("terminal")
def test_questions(tmp_path: Path) -> None:
    """Three answers make the file."""
    path = tmp_path / "c.toml"
    result = call(str(path), text="/raw\n/lake\n/own\n")
    assert result.exit_code == 0, result.output
    assert load_settings(path, {}).paths.state == "/own/state"


@pytest.mark.usefixtures("terminal")
def test_a_bad_answer_is_asked_again(tmp_path: Path) -> None:
    """An invalid answer is asked for again, with what was expected."""
    path = tmp_path / "c.toml"
    result = call(str(path), text="~/raw\n/raw\n/raw/out\n/lake\ns3://own\n/lake\n/own\n")
    assert result.exit_code == 0, result.output
    assert "~, which is not expanded" in result.stderr
    assert result.stderr.count("expected a place that does not overlap") == 2
    assert "expected a place on a local disk, like /lake" in result.stderr
    assert load_settings(path, {}).paths.output == "/lake"


@pytest.mark.usefixtures("terminal")
def test_no_question_where_a_flag_is_given(tmp_path: Path) -> None:
    """With an option the command asks nothing."""
    result = call(str(tmp_path / "c.toml"), "--input", "/raw", text="/lake\n/own\n")
    assert result.exit_code == 2
    assert "--output PLACE" in result.stderr


@pytest.mark.usefixtures("terminal")
def test_giving_up_writes_nothing(tmp_path: Path) -> None:
    """An end of the input in the middle of the questions leaves no file."""
    assert call(str(tmp_path / "c.toml"), text="/raw\n").exit_code == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A file that cannot be written is one line with what was expected."""
    result = call(str(tmp_path / "no" / "c.toml"), *flags(PLACES["local"]))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"compactor: {tmp_path}/no/c.toml: cannot be written (No such file or directory)")


@given(st.lists(st.sampled_from(["s3://a", "s3://b/c", "/x", "/y/z", "./w", ""]) | st.text(), min_size=3, max_size=3))
def test_any_answers_give_settings_or_faults(texts: Any) -> None:
    """Any answers give a file that loads without a fault, or the faults."""
    answers, faults = read_answers((texts[0],), texts[1], texts[2])
    assert bool(faults) == (answers is None)
    if answers is not None:
        parse_settings(tomllib.loads(draft(answers)))
