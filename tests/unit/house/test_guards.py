"""The list of guards is about the code of today; `make test-guards` takes each out of it."""

from pathlib import Path

from tests.guards import GUARDS

PACKAGE = Path(__file__).resolve().parents[3] / "compactor"


def test_the_code_of_each_guard_is_there_once() -> None:
    """Otherwise `make test-guards` would take out nothing, or something else as well."""
    found = {guard.name: (PACKAGE / guard.module).read_text().count(guard.text) for guard in GUARDS}
    assert {name: count for name, count in found.items() if count != 1} == {}
