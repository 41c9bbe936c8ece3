"""The suite itself: it passes in any environment, skips nothing that was required, and stores nothing in CI."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.release import PassedParts, options_of, run_parts
from tests.support.environment import CREDENTIALS, clear_environment
from tests.support.extras import CHROMIUM, EXTRAS, missing_lines, missing_required
from tests.support.jvm_starts import jvm_lines, jvm_starts

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = {
    "AWS_PROFILE": "no-such-profile",
    "AWS_REGION": "mars-north-1",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "COMPACTOR_CONFIG": "/no/such/file.toml",
    "COMPACTOR_STREAM__MAX_ATTEMPTS": "0",
    "COMPACTOR_AWS__REGION": "mars-north-1",
    "FORCE_COLOR": "1",
    "COLUMNS": "23",
    "GLUE_VERSION": "0.1",
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "no_proxy": "",
    "SPARK_HOME": "/no/such/folder",
}
IN_ANY_ENVIRONMENT = (
    "tests/contract/test_stores.py",
    "tests/unit/settings/test_settings.py",
    "tests/unit/cli/test_cli_usage.py",
)


def pytest_in(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, with some variables set."""
    command = [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider", "--color=no", *arguments]
    inherited = {name: value for name, value in os.environ.items() if name != "REQUIRE"}
    return subprocess.run(
        command, cwd=ROOT, env={**inherited, **environment}, capture_output=True, text=True, check=False
    )


SLOW = "any_document or copies_cross or shells_complete or travels or first_signal or second_signal"


@pytest.mark.parametrize("but", [SLOW, pytest.param("nothing", marks=pytest.mark.full)], ids=["most", "all"])
def test_the_suite_passes_in_a_hostile_environment(but: str) -> None:
    """Profiles, proxies, colours, widths and settings of the person who runs the tests do not reach them."""
    done = pytest_in(HOSTILE, *IN_ANY_ENVIRONMENT, "-k", f"not ({but})")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_cleared() -> None:
    """All that would change a test goes, whatever its case; what the machine needs stays."""
    kept = {"JAVA_HOME": "/java", "PATH": "/bin", "COMPACTOR_CHROMIUM": "/opt/chromium"}
    environment = {**HOSTILE, "HTTPS_PROXY": "x", "No_Proxy": "x", **kept}
    clear_environment(environment)
    assert environment == {**kept, **CREDENTIALS}


def test_storing_is_refused_in_ci() -> None:
    """With `UPDATE_STORED` every pinned test would pass: CI ends before the first one."""
    done = pytest_in({"CI": "true", "UPDATE_STORED": "1"}, "tests/unit/core/test_backoff.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "UPDATE_STORED is refused in CI" in done.stderr


def test_what_is_required_is_not_skipped(tmp_path: Path) -> None:
    """A machine without Chromium skips what needs it and says so, and fails where `REQUIRE` names it."""
    nowhere = {"PATH": str(tmp_path), "COMPACTOR_CHROMIUM": ""}
    page = "tests/end_to_end/test_report_browser.py"
    skipped = pytest_in(nowhere, page)
    assert skipped.returncode == 0, skipped.stdout + skipped.stderr
    assert CHROMIUM.reason in skipped.stdout.partition("missing on this machine")[2]
    failed = pytest_in({**nowhere, "REQUIRE": "chromium"}, page)
    assert failed.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"required, but {CHROMIUM.reason}" in failed.stdout
    unknown = pytest_in({"REQUIRE": "crhomium"}, page)
    assert unknown.returncode == pytest.ExitCode.USAGE_ERROR
    assert "REQUIRE=crhomium: expected some of native" in unknown.stderr


def test_what_counts_as_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a skip for want of a required extra fails, and each extra has a reason of its own."""
    assert len({each.reason for each in EXTRAS.values()}) == len(EXTRAS)
    monkeypatch.setenv("REQUIRE", "chromium, native")
    assert missing_required(f"Skipped: {CHROMIUM.reason}")
    assert not missing_required("Skipped: the plain engine puts whole files")
    monkeypatch.setenv("REQUIRE", "")
    assert not missing_required(f"Skipped: {CHROMIUM.reason}")
    assert not [line for line in missing_lines(()) if "(0 skipped)" not in line]


def test_jvm_starts_are_counted(tmp_path: Path) -> None:
    """A start is put down to the module of its test."""
    assert jvm_starts(tmp_path) == []
    (tmp_path / "starts").write_text(
        "tests/a.py::test_one (setup)\ntests/b.py::t (call)\ntests/a.py::test_two (call)\n"
    )
    assert jvm_lines(jvm_starts(tmp_path)) == ["   3  in all", "   2  tests/a.py", "   1  tests/b.py"]


def test_the_summary_of_a_release(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part runs whatever comes of the one before it; one that fails is named and fails the whole."""
    monkeypatch.setattr("tests.release.time", SimpleNamespace(monotonic=lambda: 0.0))  # however slow the machine is
    nothing = PassedParts(tmp_path / "parts.json", lambda _: None)
    assert run_parts({"one": ["false"], "two": ["true"]}, nothing) == 1
    assert run_parts({"two": ["true"]}, nothing) == 0
    told = capfd.readouterr().out.splitlines()
    assert told[:3] == ["== one", "== two", "== summary"]
    assert told[3].split() == ["one", "0", "min", "00", "s", "FAILED", "with", "exit", "code", "1"]
    assert (told[5], told[-1]) == ("FAILED: one", "all 1 parts passed")
    assert not list(tmp_path.iterdir()), "files that differ from every commit are no commit's"


def test_a_part_beside_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It runs while they do, and is told of as they are; it passes once a commit as well."""
    file, log = tmp_path / "parts.json", tmp_path / "log"
    wait = f"until grep -q one {log}; do sleep 0.01; done; echo beside; echo two >> {log}"
    parts = {
        "one": ["sh", "-c", f"echo one >> {log}; until grep -q two {log}; do sleep 0.01; done"],
        "two": ["sh", "-c", wait],
        "three": ["false"],
    }
    log.touch()
    assert run_parts(parts, PassedParts(file, lambda _: "f1"), beside="two") == 1
    told = capfd.readouterr().out.splitlines()
    assert told[:5] == ["== one", "== three", "== two", "beside", "== summary"]
    assert [line.split()[0] for line in told[5:]] == ["one", "two", "three", "FAILED:"]
    assert run_parts({**parts, "two": ["false"]}, PassedParts(file, lambda _: "f1"), beside="two") == 1
    assert capfd.readouterr().out.splitlines()[0] == "== three"
    assert run_parts({"two": ["false"]}, PassedParts(file, lambda _: "f2"), beside="two") == 1
    assert "FAILED: two" in capfd.readouterr().out


def test_a_part_of_a_release_passes_once_on_its_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What passed is not run again while its files are the same; what failed is, and what files were changed under."""
    file, log = tmp_path / "parts.json", tmp_path / "log"
    files: dict[str, str | None] = {"a": "a1", "b": "b1"}

    def run(*failing: str, meanwhile: str | None = None) -> list[str]:
        log.write_text("")
        ends = {name: f"echo {name} >> {log}; {'false' if name in failing else 'true'}" for name in files}
        seen = iter([files["a"]] * 2)  # whether it passed before, and what it begins with
        passed = PassedParts(file, lambda name: next(seen, meanwhile or files["a"]) if name == "a" else files[name])
        code = run_parts({name: ["sh", "-c", script] for name, script in ends.items()}, passed)
        assert code == (1 if failing else 0)
        return log.read_text().split()

    assert run("b") == ["a", "b"]
    assert run("b") == ["b"]
    assert "a" in capfd.readouterr().out.split("== summary")[-1].split("earlier on these files")[0]
    assert (run(), run()) == (["b"], [])
    files["b"] = "b2"
    assert (run(), run()) == (["b"], []), "the files of the other are as they were"
    files["a"] = "a2"
    assert (run(meanwhile="a3"), run(), run()) == (["a"], ["a"], []), "they changed while it ran"
    files |= {"a": None, "b": None}
    assert (run(), run()) == (["a", "b"], ["a", "b"]), "they differ from every commit"
    files |= {"a": "a2", "b": "b2"}
    file.write_text('{"a": "of an earlier form"}')
    assert run() == ["a", "b"]
    file.write_text('{"a"')
    assert run() == ["a", "b"], "its writing was cut short"


def test_what_passed_with_options_is_not_remembered() -> None:
    """Given on the command line of make, or in the environment; which parts to run is none of a part's."""
    assert options_of({"MAKEFLAGS": r"w -- RELEASE_STEPS=lint\ soak AGAIN=1", "REQUIRE": "native"}) == []
    assert options_of({"MAKEFLAGS": "w -- SEEDS=1"}) == ["SEEDS"]
    assert options_of({"PYTEST_ARGS": "-k ledger"}) == ["PYTEST_ARGS"]
