"""Promises of DST: every command finds the settings of a folder that `compact` wrote, or says where it looked."""

import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from compactor.cli.entry import SUMMARIES, command_of
from compactor.cli.entry import compactor as command
from compactor.cli.invocation import DESTINATION
from tests.support.sampling import few
from tests.unit.cli.test_cli_compact import pytestmark as needs_native

pytestmark = needs_native


def call(*arguments: object, env: dict[str, str | None] | None = None) -> Result:
    result = CliRunner().invoke(command, list(map(str, arguments)), env={"COMPACTOR_CONFIG": None, **(env or {})})
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with `raw`, of which one line is wrong, and `rows`, which `compact` made of it."""
    (tmp_path / "raw").mkdir()
    path = tmp_path / "raw" / "2026-01-02.ndjson"
    path.write_bytes(b'{"id": 1}\nno json\n')
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    monkeypatch.chdir(tmp_path)
    assert call("compact", "raw", "rows").exit_code == 0
    return tmp_path


OF_ROWS = [
    ("status", "rows"),
    ("verify", "rows"),
    ("trace", "--in", "rows", "raw/2026-01-02.ndjson"),
    ("redrive", "rejects", "--in", "rows", "--dry-run"),
    ("redrive", "files", "--in", "rows", "--dry-run"),
    ("report", "rows", "--out", "-"),
    ("rebuild", "rows", "--dry-run"),
    ("schema", "show", "rows"),
    ("plan", "raw", "--in", "rows", "--dry-run"),
    ("data", "clean", "rows", "--dry-run"),
    ("stop", "rows"),
    ("job", "stop", "rows"),
    ("schema", "suggest", "--in", "rows"),
    ("dismiss", "raw/2026-01-02.ndjson", "--in", "rows", "--why", "TEXT"),
    ("cost", "estimate", "rows"),
]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rows"], "rows is an output of `compact` -> expected a file or a manifest id; give the output as --in rows"),
        (["raw"], "no settings: no --in DST, no --config"),
        (["raw", "--in", "rows"], "raw is a folder -> expected a file, an output file, a rejects file or a manifest;"),
        (["rows/none/", "--in", "rows"], "rows/none/ is a folder -> expected"),
    ],
)
def test_what_trace_expects(words: list[str], expected: str) -> None:
    """A folder is nothing to trace, and neither is DST alone."""
    result = call("trace", *words)
    assert (result.exit_code, expected in result.stderr) == (2, True)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", few(OF_ROWS, 4), ids=" ".join)
def test_commands_take_dst(words: tuple[str, ...]) -> None:
    """A command with DST needs no settings file, and no variable gets in its way."""
    result = call(*words, env={"COMPACTOR_CONFIG": "/nowhere.toml"})
    assert (result.exit_code in {0, 3}, result.stderr) == (True, "")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("trace rows raw/2026-01-02.ndjson", "(raw/2026-01-02.ndjson); a destination is given by --in DST"),
        ("job plan rows raw", "(raw); a destination is given by --in DST"),
        ("redrive files rows", "(rows); a destination is given by --in DST; a manifest is given by --manifest ID"),
        ("verify rows m-1", "(m-1); a manifest is given by --manifest ID"),
        ("status rows m-1", "(m-1)"),
        ("rebuild m-1", "or the place of its --state; a manifest is given by --manifest ID"),
        ("verify some/place", "or the place of its --state"),
        ("status m-1", "or the place of its --state"),
    ],
)
def test_words_that_need_an_option(words: str, expected: str) -> None:
    """A message on a word too many, or on no settings, adds the options of the command that may be meant."""
    result = call(*words.split())
    assert (result.exit_code, result.stderr.rstrip().endswith(expected)) == (2, True)


def test_every_command_takes_dst() -> None:
    """All commands have DST as their only argument, or --in, but those that make their own settings, and one for S3."""
    for name in set(SUMMARIES) - {"compact", "demo", "job init", "restore"}:
        arguments = [each for each in command_of(name).params if isinstance(each, click.Argument)]
        is_argument = [each.name for each in arguments] == [DESTINATION]
        is_option = any("--in" in each.opts for each in command_of(name).params)
        assert is_argument != is_option, name
        assert arguments, name


def test_the_manifest_of_a_destination(home: Path) -> None:
    """DST and the id of a manifest may stand together, and alone with settings in the current folder."""
    [manifest_id] = [path.stem for path in (home / "rows.compactor/state/accepted").iterdir()]
    assert call("verify", "rows", "--manifest", manifest_id).exit_code == 0
    (home / "compactor.toml").write_bytes((home / "rows.compactor/compactor.toml").read_bytes())
    assert "1 committed" in call("verify", "--manifest", manifest_id).stdout
    assert "1 committed" in call("verify", "rows").stdout
    assert call("verify", "--manifest", "rowz").stderr.startswith("compactor: manifest rowz: ")


@pytest.mark.parametrize("place", ["./rows", "rows/", "linked", "rows.compactor", "rows.compactor/compactor.toml"])
def test_spellings_of_a_destination(home: Path, place: str) -> None:
    """A folder has one place of settings, however it is reached; the place of the state will do as well."""
    (home / "linked").symlink_to("rows")
    assert call("status", place).exit_code == 0


def test_state_elsewhere(home: Path) -> None:
    """With --state, that place stands for DST, and the closing lines show it."""
    result = call("compact", "raw", "other", "--state", "kept")
    assert f"compactor status {home}/kept " in result.stdout
    assert call("verify", "kept").exit_code == 0
    result = call("verify", "./other")
    assert result.exit_code == 2
    assert result.stderr == (
        f"compactor: DST: ./other: no settings there; looked for {home}/other.compactor/compactor.toml and "
        f"{home}/other/compactor.toml -> expected the DST of an earlier `compactor compact`, or the place of its "
        "--state\n"
    )


def test_the_current_folder(home: Path) -> None:
    """`compactor.toml` in the current folder counts after DST, --config and the variable."""
    (home / "compactor.toml").write_text("no = toml")
    assert "compactor.toml: " in call("status").stderr
    assert call("status", "rows").exit_code == 0
    assert call("status", "--config", "rows.compactor/compactor.toml").exit_code == 0
    assert call("status", env={"COMPACTOR_CONFIG": "rows.compactor/compactor.toml"}).exit_code == 0


def test_nothing_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without settings a command says what was looked for, and where."""
    monkeypatch.chdir(tmp_path)
    assert call("status").stderr == (
        f"compactor: no settings: no DST, no --config, no $COMPACTOR_CONFIG, and no {tmp_path}/compactor.toml -> "
        "expected the DST of an earlier `compactor compact`, or a settings file: run `compactor init`\n"
    )
    for words in (("status", "rowz"), ("verify", "rowz"), ("rebuild", "rowz"), ("redrive", "files", "--in", "rowz")):
        result = call(*words)
        assert (result.exit_code, f"looked for {tmp_path}/rowz.compactor/" in result.stderr) == (2, True)


def test_a_destination_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error in words, and no bug to report."""

    def refuse(_path: Path) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_file", refuse)
    result = call("status", tmp_path / "rows")
    said = (
        f"compactor: cannot read {tmp_path}/rows.compactor/compactor.toml: permission denied\nnext: correct the place"
    )
    assert (result.exit_code, result.stderr.startswith(said)) == (1, True), result.stderr


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "words", [("status", "rows"), ("verify", "rows", "--manifest", "m1"), ("schema", "show", "rows")], ids=" ".join
)
def test_dst_beside_a_settings_file(words: tuple[str, ...]) -> None:
    """DST and --config both say where the settings are."""
    result = call("--config", "x.toml", *words)
    assert (result.exit_code, "give the destination rows or --config, not both" in result.stderr) == (2, True)


@pytest.mark.parametrize("option", [("--names", "exact"), ("--claims", "table")], ids=" ".join)
def test_what_a_destination_has_for_good(home: Path, option: tuple[str, str]) -> None:
    """Another way of naming columns or of claiming files is refused, and no setting is rewritten."""
    kept = (home / "rows.compactor/compactor.toml").read_bytes()
    result = call("compact", "raw", "rows", *option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"compactor: {' '.join(option)}: {home}/rows has ")
    assert (home / "rows.compactor/compactor.toml").read_bytes() == kept
    assert call("compact", "raw", "rows", "--names", "safe").exit_code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["erase"], "No such command 'erase'. Did you mean `compactor data erase`?"),
        (["check"], "Did you mean `compactor job check` or `compactor table check`?"),
        (["help"], "Did you mean `compactor --help`?"),
        (["table", "erase"], "Did you mean `compactor data erase`?"),
    ],
)
def test_a_verb_without_its_group(words: list[str], expected: str) -> None:
    """The message names the whole command."""
    result = call(*words)
    assert (result.exit_code, result.stderr.count(expected), result.stderr.count("Did you mean")) == (2, 1, 1)


@pytest.mark.usefixtures("home")
def test_swapped_arguments() -> None:
    """The output of an earlier call is refused as input."""
    refused = call("compact", "rows", "raw")
    assert (refused.exit_code, "rows is the output of an earlier `compactor compact`" in refused.stderr) == (2, True)
