"""Remembers which configurations hold, so that what was explored for an hour is not explored again.

They are kept in the repository. Each is known by a digest of the module, the configuration, and TLC: where any of it
has changed, the configuration is explored anew.
"""

import hashlib
import json
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.protocol.configurations import Configuration
from tests.protocol.tlc import SHA256, SPEC, Exploration

HELD = SPEC / "held.json"


@dataclass(frozen=True, slots=True)
class Held:
    """A configuration that holds.

    Attributes:
        module: Its module.
        configuration: Its name.
        states: Distinct states.
    """

    module: str
    configuration: str
    states: int


class HeldConfigurations:
    """Explores configurations that are not known to hold.

    Args:
        file: Keeps those that hold, by their fingerprint.
        is_again: Whether to explore also those that hold by the file.
    """

    def __init__(self, file: Path = HELD, *, is_again: bool = False) -> None:
        self._file, self._is_again, self._lock = file, is_again, threading.Lock()

    def explored(self, configuration: Configuration) -> tuple[Exploration, bool]:
        """What was found of a configuration, and whether that was earlier.

        Raises:
            RuntimeError: TLC could not read or evaluate the model.
        """
        key = fingerprint(configuration)
        if not self._is_again and (found := self._kept().get(key)):
            return Exploration("", found.states, 0.0, ""), True
        explored = configuration.explored()
        held = Held(configuration.module, configuration.name, explored.states)
        with self._lock:
            others = {each: held for each, held in self._kept().items() if each != key}
            self._keep(others if explored.violated else {**others, key: held})
        return explored, False

    def keep_only(self, configurations: Iterable[Configuration]) -> None:
        """Forget all others, such as those of a module as it was before."""
        keys = {fingerprint(each) for each in configurations}
        with self._lock:
            self._keep({key: held for key, held in self._kept().items() if key in keys})

    def _keep(self, held: dict[str, Held]) -> None:
        in_order = sorted(held.items(), key=lambda each: (each[1].module, each[1].configuration, each[0]))
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({key: asdict(each) for key, each in in_order}, indent=1) + "\n")
        new.replace(self._file)

    def _kept(self) -> dict[str, Held]:
        try:
            return {key: Held(**each) for key, each in json.loads(self._file.read_text()).items()}
        except FileNotFoundError:
            return {}


def fingerprint(configuration: Configuration) -> str:
    """A digest of all that TLC's answer depends on; modules of `spec/` extend only those that come with TLC."""
    definitions, text = configuration.texts()
    parts = [SHA256, configuration.module, (SPEC / f"{configuration.module}.tla").read_text(), *definitions, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
