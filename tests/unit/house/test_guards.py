"""The list of guards is about the code of today; `make test-guards` takes each out of it."""

from pathlib import Path

import pytest

from tests.guards import GUARDS, Guard

PACKAGE = Path(__file__).resolve().parents[3] / "compactor"


@pytest.mark.parametrize("guard", GUARDS, ids=[f"{number:02d}" for number in range(len(GUARDS))])
def test_the_code_of_a_guard_is_there_once(guard: Guard) -> None:
    """Else nothing, or something else as well, would be taken out."""
    assert (PACKAGE / guard.module).read_text().count(guard.text) == 1, guard.name
