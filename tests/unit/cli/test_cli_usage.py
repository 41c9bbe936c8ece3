"""Promises of the command line as a whole: help, settings, exit codes, errors and signals."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner, Result

import compactor
from compactor.cli.entry import EVERYDAY, EXAMPLES, GROUPS, LONG, SHORT, SUMMARIES, VERBS, command_of
from compactor.cli.entry import compactor as command
from compactor.cli.ui.failures import ExitCode, exit_code_of
from compactor.core.errors import AccessError, CredentialsMissing, InputError, SettingsError, StoreUnavailable
from compactor.telemetry.log_events import CATALOGUE
from tests.support.settings_files import write_settings

FIX = f"next: {SettingsError.next_move}"


def call(*arguments: str, env: dict[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(command, arguments, env={"COMPACTOR_CONFIG": None, **(env or {})})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Settings on plain folders."""
    return write_settings(tmp_path)


def test_version() -> None:
    """--version says name and version."""
    assert {call(option).stdout for option in ("--version", "-V")} == {f"compactor {compactor.__version__}\n"}


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_every_command_has_help(name: str) -> None:
    """The help of a command needs no settings, begins with the sentence of the list, and explains every option."""
    result = call(*name.split(), "--help")
    assert result.exit_code == 0
    usage, explained = result.stdout.split("\n\n", maxsplit=1)
    assert usage.startswith(f"Usage: compactor {name}")
    assert " ".join(explained.split()).startswith(SUMMARIES[name])
    options = [each for each in command_of(name).params if isinstance(each, click.Option)]
    assert options
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("name", sorted(SUMMARIES))
def test_the_examples_of_a_command_are_calls_of_it(name: str) -> None:
    """The help ends with calls that the command would take: three, or fewer for a verb of a group."""
    shown = call(*name.split(), "--help").stdout.partition("Examples:\n")[2]
    assert len(EXAMPLES[name]) == 3 or (" " in name and EXAMPLES[name])
    for line, meaning in EXAMPLES[name]:
        assert f"    {line}\n        {meaning}\n" in shown
        words = shlex.split(line)
        verb = name.rsplit(maxsplit=1)[-1]
        at = words.index(verb)
        assert words[at - 1 : at + 1] == name.split() or " " not in name or verb in SHORT
        command.make_context("compactor", words[1 : at + 1]).close()
        command_of(name).make_context(name, words[at + 1 :]).close()


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_numbers_are_finite(value: str) -> None:
    """No option takes what only looks like a number; 1e300 s is no time to wait either."""
    for name in SUMMARIES:
        for option in command_of(name).params:
            if isinstance(option.type, click.FloatRange):
                with pytest.raises(click.BadParameter):
                    option.type.convert(value, option, None)
    assert call("status", "--watch", "1e300").exit_code == ExitCode.WRONG_USAGE


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--since", "0001-01-01", "--out", "-"),
        ("rejects", "--limit", "9" * 30),
        ("trace", "nosuch.ndjson", "--days", "9" * 30),
        ("cost", "estimate", "--files-per-hour", "1e308"),
    ],
)
def test_huge_numbers_end_no_command(config: Path, words: tuple[str, ...]) -> None:
    """They are as good as all there is, or wrong usage."""
    result = call("--config", str(config), *words)
    assert "Traceback" not in result.stderr
    assert "unexpected" not in result.stderr


def test_the_manual_page_is_the_help() -> None:
    """A reader of manual pages understands it."""
    page = Path(__file__).parents[3] / "docs" / "compactor.1"
    if groff := shutil.which("groff"):
        done = subprocess.run([groff, "-man", "-Tascii", "-ww", page], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        shown = " ".join(re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout).split())
        assert [name for name in SUMMARIES if f"compactor {name}" not in shown] == []


def test_shells_complete_commands() -> None:
    """What the README says to evaluate makes bash complete the command."""
    script = 'eval "$(_COMPACTOR_COMPLETE=bash_source "$0" -m compactor)"; complete -p compactor'
    done = subprocess.run(["bash", "-c", script, sys.executable], capture_output=True, text=True, check=True)
    assert "_compactor_completion compactor" in done.stdout
    words = {**os.environ, "COMP_WORDS": "compactor re", "COMP_CWORD": "1", "_COMPACTOR_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-m", "compactor"], env=words, capture_output=True, text=True, check=False)
    assert {"plain,rejects", "plain,report", "plain,redrive"} <= set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("compact", {"file"}),
        ("compact raw", {"file"}),
        ("compact raw --schema", {"file"}),
        ("compact raw --engine", {"plain"}),
        ("--config", {"file"}),
        ("status --config", {"file"}),
        ("trace", {"file"}),
        ("trace --in", {"file"}),
        ("schema suggest", {"file"}),
        ("plan", {"file"}),
        ("verify", {"file"}),
        ("init --output", {"file"}),
        ("cost estimate --region", set()),
        ("redrive", {"plain"}),
        ("", {"plain"}),
    ],
)
def test_shells_complete_paths(words: str, kinds: set[str]) -> None:
    """Where a path may stand, the shell completes paths; elsewhere choices and commands, if any."""
    found = BashComplete(command, {}, "compactor", "_COMPACTOR_COMPLETE").get_completions(words.split(), "")
    assert {each.type for each in found} == kinds


def test_the_list_of_commands_is_whole() -> None:
    """Each module of commands is in the list, under the name of its command or group."""
    folder = Path(compactor.__file__).parent / "cli" / "commands"
    modules = {" ".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("[!_]*.py")}
    names = (name if name.partition(" ")[0] in LONG else name.partition(" ")[0] for name in SUMMARIES)
    assert modules == {name.replace("-", "_") for name in names}
    assert [command_of(name).name for name in SUMMARIES] == list(SUMMARIES)
    assert list(EXAMPLES) == list(SUMMARIES)
    listed = " ".join(call("--help").stdout.split())
    assert all(f"{name} {summary}" in listed for name, summary in EVERYDAY.items())
    for group, verbs in VERBS.items():
        assert f"{group} {GROUPS[group]}: " in listed
        shown = " ".join(call(group, "--help").stdout.split())
        assert all(f"{verb} {summary}" in shown for verb, summary in verbs.items())


@pytest.mark.parametrize("name", SHORT)
def test_a_short_name_is_the_same_command(name: str) -> None:
    """`compactor run` is `compactor job run`; the list of commands has it once."""
    assert command.commands[name] is command_of(f"job {name}")
    assert f"\n  {name} " not in call("--help").stdout


@pytest.mark.parametrize("group", [[], *([name] for name in GROUPS)], ids=" ".join)
def test_a_group_alone_shows_its_help(group: list[str]) -> None:
    """In lines, as --help does."""
    assert call(*group).output.strip() == call(*group, "--help").output.strip()


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_help_loads_no_library(option: str) -> None:
    """What needs no settings answers at once: the libraries of the commands take a second to load."""
    script = """
import sys
from compactor.cli.entry import compactor
compactor.main([sys.argv[1]], standalone_mode=False)
sys.exit(str(sorted({"pydantic", "pyarrow", "pyspark", "boto3", "rich"} & sys.modules.keys())))
"""
    done = subprocess.run([sys.executable, "-c", script, option], capture_output=True, text=True, check=False)
    assert (done.stdout != "", done.stderr) == (True, "[]\n")


WRONG_USAGE = [
    [],
    ["no-such-command"],
    ["plan"],
    ["plan", "ftp://host/folder"],
    ["plan", "/raw", "--date", "2025-02-30"],
    ["plan", "/raw", "--since", "yesterday"],
    ["trace"],
    ["trace", "/raw/x", "--days", "0"],
    ["rebuild", "--force"],
    ["rebuild", "--manifest", "m1", "--date", "2025-12-21"],
    ["redrive"],
    ["redrive", "everything"],
    ["redrive", "manifests", "--reason", "missing"],
    ["redrive", "files", "--date", "21.12.2025"],
    ["redrive", "files", "--manifest", "../m1"],
    ["verify", "--date", "21.12.2025"],
    ["job", "check", "--close"],
    ["demo", "--size", "100"],
    ["demo", "--size", "0mb"],
    ["--log-format", "xml", "status"],
]


@pytest.mark.parametrize("arguments", WRONG_USAGE, ids=" ".join)
def test_wrong_usage(arguments: list[str]) -> None:
    """Wrong usage ends with 2, and nothing on stdout."""
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr


def test_all_faults_at_once(tmp_path: Path) -> None:
    """Every fault of the settings is a line, and all are printed at once."""
    path = tmp_path / "bad.toml"
    path.write_text('[paths]\nmanifests = "ftp://x"\noutput = 3\n[stream]\nmax_attempts = 0\n')
    result = call("--config", str(path), "status")
    assert result.exit_code == 2
    *lines, last = result.stderr.splitlines()
    assert last == FIX
    assert all(line.startswith("compactor: ") for line in lines)
    for key in ("paths.manifests", "paths.output", "paths.state", "input.allowed_prefixes", "stream.max_attempts"):
        assert sum(f" {key}" in line for line in lines) == 1, key


@pytest.mark.parametrize("place", ["before", "behind", "environment"])
def test_config_before_or_behind_the_command(config: Path, place: str) -> None:
    """The settings file may be named before or after the command, or by a variable."""
    option = ["--config", str(config)]
    if place == "environment":
        result = call("status", env={"COMPACTOR_CONFIG": str(config)})
    else:
        result = call(*option, "status") if place == "before" else call("status", *option)
    assert result.exit_code == 0, result.stderr


def test_the_nearer_config_counts(config: Path) -> None:
    """--config after the command overrides --config before it, which overrides the variable."""
    assert call("--config", "/nowhere", "status", "--config", str(config)).exit_code == 0
    assert call("--config", str(config), "status", env={"COMPACTOR_CONFIG": "/nowhere"}).exit_code == 0


def test_settings_by_variables_alone(tmp_path: Path) -> None:
    """Variables can take the place of a file."""
    env: dict[str, str | None] = {
        f"COMPACTOR_PATHS__{key.upper()}": f"{tmp_path}/{key}" for key in ("manifests", "output", "state")
    }
    result = call("status", env={**env, "COMPACTOR_INPUT__ALLOWED_PREFIXES": f"{tmp_path}/raw"})
    assert result.exit_code == 0, result.stderr


ENDS = {
    "settings": (
        SettingsError(["a: 1", "b: 2"]),
        ExitCode.WRONG_USAGE,
        ["compactor: a: 1", "compactor: b: 2", FIX],
    ),
    "one fault": (SettingsError(["a: 1"]), ExitCode.WRONG_USAGE, ["compactor: a: 1"]),
    "operator": (
        AccessError("s3://x: denied"),
        ExitCode.FAILED,
        ["compactor: s3://x: denied", f"next: {AccessError.next_move}"],
    ),
    "no credentials": (CredentialsMissing("s3: do this"), ExitCode.FAILED, ["compactor: s3: do this"]),
    "passing": (
        StoreUnavailable("slow down"),
        ExitCode.FAILED,
        ["compactor: slow down", f"next: {StoreUnavailable.next_move}"],
    ),
    "input": (
        InputError("\nfirst\n  at java.lang"),
        ExitCode.FAILED,
        ["compactor: first", f"next: {InputError.next_move}"],
    ),
    "interrupt": (KeyboardInterrupt(), ExitCode.INTERRUPTED, ["compactor: interrupted"]),
}


@pytest.mark.parametrize(("error", "code", "lines"), ENDS.values(), ids=ENDS)
def test_errors_become_codes(
    error: BaseException, code: ExitCode, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every kind of error has its exit code, a line on stderr for each fault, and the next action below.

    A single fault of the settings says what was expected, so it has no next action of its own.
    """

    def work() -> ExitCode:
        raise error

    assert exit_code_of(work) is code
    assert capsys.readouterr().err.splitlines() == lines


def test_a_bug_leaves_its_traceback_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """An unforeseen error ends with 1; the log has its traceback, the last two lines its gist and the next action."""
    call("--log-format", "json", "status")  # starts the log

    quoted = "by nothing"

    def work() -> ExitCode:
        raise ZeroDivisionError(quoted)

    assert exit_code_of(work) is ExitCode.FAILED
    *log, gist, last = capsys.readouterr().err.splitlines()
    assert gist.startswith("compactor: unexpected ZeroDivisionError in ")
    assert last == f"next: {CATALOGUE['command.failed'].next_move}"
    assert "by nothing" not in log[-1]
    assert "command.failed" in log[-1]
    assert "Traceback" in log[-1]


@pytest.mark.parametrize("arguments", [["run", "--once"], ["demo"]], ids=" ".join)
def test_no_java_is_told_before_anything_starts(config: Path, arguments: list[str], tmp_path: Path) -> None:
    """Without Java a command that needs it ends with 2 and one clear line."""
    env: dict[str, str | None] = {"COMPACTOR_CONFIG": str(config), "PATH": str(tmp_path), "JAVA_HOME": None}
    env["COMPACTOR_STREAM__SOURCE"] = "spark"
    result = call(*arguments, env=env)
    assert result.exit_code == 2
    assert result.stderr == "compactor: Java 17 or 21 is needed: no `java` on the PATH and no JAVA_HOME\n"
    assert not (tmp_path / "m").exists()


def test_the_module_is_the_command() -> None:
    """`python -m compactor` does what `compactor` does."""
    done = subprocess.run(
        [sys.executable, "-m", "compactor", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"compactor {compactor.__version__}\n"


# It never waits for long: a signal that comes just before a call which blocks is seen only when that call is over.
SIGNALLED = """
import select, sys, threading
from compactor.cli.ui.signals import StopSignals
stopped = threading.Event()
with StopSignals() as signals:
    if sys.argv[1] == "after":
        signals.attach(stopped.set)
    print("ready", flush=True)
    while sys.argv[1] != "after" and not signals.requested:
        threading.Event().wait(0.01)
    if sys.argv[1] == "before":
        signals.attach(stopped.set)
    while not stopped.wait(0.02):
        pass
    print("stopped", flush=True)
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        pass
"""


def signalled(when: str) -> "subprocess.Popen[str]":
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SIGNALLED, when], text=True, **pipes)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_to_stop(number: signal.Signals, when: str) -> None:
    """One signal stops the job and lets it finish, even if it comes before the job has started."""
    with signalled(when) as process:
        process.send_signal(number)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        _, told = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "stopping after the manifests in flight" in told


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_at_once(second: signal.Signals) -> None:
    """A second signal of either kind ends the process with 1, whatever it is in the middle of."""
    with signalled("after") as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        process.send_signal(second)
        assert process.wait(60) == 1
        assert process.stderr is not None
        assert process.stderr.read().endswith("ended at once; the next run continues\n")
