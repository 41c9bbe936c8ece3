"""All attacks: those that were thought of, those that a search found, and any by its genome."""

from tests.hostile.attack import Attack
from tests.hostile.cases import files, floods, found, inputs, keys, killers, lines, manifests
from tests.hostile.genome import attack_of

ATTACKS: tuple[Attack, ...] = (
    *files.ATTACKS,
    *lines.ATTACKS,
    *keys.ATTACKS,
    *manifests.ATTACKS,
    *inputs.ATTACKS,
    *killers.ATTACKS,
    *floods.ATTACKS,
    *found.ATTACKS,
)
BY_NAME = {attack.name: attack for attack in ATTACKS}


def named(name: str) -> Attack:
    """An attack by its name, which may be any genome.

    Raises:
        ValueError: It is neither.
    """
    return BY_NAME.get(name) or attack_of(name)
