"""All attacks."""

from tests.hostile.attack import Attack
from tests.hostile.cases import files, floods, inputs, keys, killers, lines, manifests

ATTACKS: tuple[Attack, ...] = (
    *files.ATTACKS,
    *lines.ATTACKS,
    *keys.ATTACKS,
    *manifests.ATTACKS,
    *inputs.ATTACKS,
    *killers.ATTACKS,
    *floods.ATTACKS,
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
