"""Each fault of the first template, reintroduced by itself, is shown; today's template has none of them."""

import pytest

from tests.deployment.first_template import FAULTS, Fault
from tests.deployment.looks import World


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_that_is_reintroduced_is_shown(fault: Fault) -> None:
    """The same look finds nothing today, and the fault when it is reintroduced."""
    assert [*fault.shown(World(parameters=dict(fault.given)))] == []
    world = World(parameters=dict(fault.given))
    fault.reintroduce(world)
    lines = [*fault.shown(world)]
    assert any(fault.words in line for line in lines), lines
