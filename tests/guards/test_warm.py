"""Runs of a warm pytest: each sees the code as it is then, and none goes on after its time."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards import Guard, warm
from tests.guards.__main__ import PASSED, Copy, tried
from tests.guards.warm import NOT_ENDED, WarmPytest, compile_once

pytestmark = pytest.mark.full

GUARD = "answer == 42"
TESTS = """
import colorsys
import time
from pathlib import Path

from compactor.guarded import is_right

def test_right():
    assert is_right(42)

def test_wrong():
    assert not is_right(41)

def test_neither():
    assert not is_right(42)

def test_without_end():
    time.sleep(2)
    Path("went-on").touch()
"""


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Copy]:
    """A copy of a project with one guard."""
    for package in ("compactor", "tests", "tests/guards"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    shutil.copy(warm.__file__, tmp_path / "tests" / "guards")
    (tmp_path / "compactor" / "guarded.py").write_text(f"def is_right(answer):\n    return {GUARD}\n")
    (tmp_path / "tests" / "test_guarded.py").write_text(TESTS)
    compile_once(tmp_path / "compactor")
    with WarmPytest(tmp_path) as started:
        yield Copy(tmp_path, started)


def guard(without: str, test: str) -> Guard:
    return Guard("only one answer is right", "guarded.py", GUARD, without, (f"tests/test_guarded.py::{test}",))


def test_each_run_sees_the_code_of_its_time(copy: Copy) -> None:
    """Also where a change leaves the length and the time of a module as they were, and byte code is kept."""
    for _ in range(2):
        assert tried(copy, guard("answer == 41", "test_wrong")).noticed_by == "tests/test_guarded.py::test_wrong"
        assert tried(copy, guard("answer >= 42", "test_wrong")).fault == "no test failed"


def test_a_test_that_always_fails_guards_nothing(copy: Copy) -> None:
    assert "fails with the guard, too" in tried(copy, guard("answer > 41", "test_neither")).fault


def test_a_run_ends_with_its_time(copy: Copy) -> None:
    """And the next one is as any other."""
    test = "tests/test_guarded.py::test_without_end"
    assert copy.pytest.run(["-p", "no:cacheprovider", test], patience_seconds=1.0)[0] == NOT_ENDED
    code, printed = copy.pytest.run(["-p", "no:cacheprovider", "tests/test_guarded.py::test_right"], 60.0)
    assert (code, "1 passed" in printed) == (PASSED, True)
    assert not (copy.folder / "went-on").exists()


def test_what_others_wrote_is_imported_once(copy: Copy) -> None:
    """A module of the standard library that the tests import stays, one of this project does not."""
    said = "import sys; print([name for name in ('colorsys', 'compactor.guarded') if name in sys.modules])"
    (copy.folder / "conftest.py").write_text(said)
    arguments = ["-p", "no:cacheprovider", "-s", "tests/test_guarded.py::test_right"]
    assert [copy.pytest.run(arguments, 60.0)[1].splitlines()[0] for _ in range(2)] == ["[]", "['colorsys']"]
