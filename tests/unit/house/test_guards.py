"""The guards are about the code of today; `make test-guards` takes each out of it."""

from pathlib import Path

from tests.guards import GUARDS, marks, without
from tests.simulation.found import SEEDS

ROOT = Path(__file__).resolve().parents[3]
MARKS = marks(ROOT / "compactor")


def test_each_mark_is_that_of_one_guard() -> None:
    """Otherwise `make test-guards` would take out nothing, or something else as well."""
    assert sorted(name for name, paths in MARKS.items() for _ in paths) == sorted(guard.name for guard in GUARDS)
    assert SEEDS.keys() <= MARKS.keys()


def test_each_guard_can_be_taken_out_of_what_stands_at_its_mark() -> None:
    for guard in GUARDS:
        [path] = MARKS[guard.name]
        compile(without(path.read_text(), guard), str(path), "exec")


def test_the_tests_of_each_guard_are_there() -> None:
    assert {path for guard in GUARDS for path in guard.tests if not (ROOT / path).exists()} == set()
