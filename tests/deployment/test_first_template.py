"""Each fault of the first template, put back by itself, is shown; today's template has none of them."""

import pytest

from tests.deployment.first_template import FAULTS, Fault
from tests.deployment.looks import World


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_that_is_put_back_is_shown(fault: Fault) -> None:
    """The same look finds nothing today, and the fault when it is put back."""
    assert [*fault.shown(World(parameters=dict(fault.given)))] == []
    world = World(parameters=dict(fault.given))
    fault.put_back(world)
    lines = [*fault.shown(world)]
    assert any(fault.words in line for line in lines), lines
