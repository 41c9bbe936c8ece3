"""Remembers which configurations hold, so that hours of exploring go on where they were stopped.

What is remembered is one text: the module, the configuration, and TLC's digest. Where any of it has changed, the
configuration is explored anew.
"""

import hashlib
import json
import threading
from pathlib import Path

from tests.protocol.configurations import Configuration
from tests.protocol.tlc import JAR, SHA256, SPEC, Exploration

HELD = JAR.with_name("spec-held.json")


class HeldConfigurations:
    """Explores configurations that are not known to hold.

    Args:
        file: Keeps states and seconds of those that hold, by their fingerprint.
    """

    def __init__(self, file: Path = HELD) -> None:
        self._file, self._lock = file, threading.Lock()

    def explored(self, configuration: Configuration) -> tuple[Exploration, bool]:
        """What was found of a configuration, and whether that was earlier.

        Raises:
            RuntimeError: TLC could not read or evaluate the model.
        """
        key = fingerprint(configuration)
        if key in (kept := self._kept()):
            states, seconds = kept[key]
            return Exploration("", states, seconds, ""), True
        found = configuration.explored()
        if not found.violated:
            self._add(key, found)
        return found, False

    def _add(self, key: str, found: Exploration) -> None:
        with self._lock:
            kept = {**self._kept(), key: (found.states, round(found.seconds, 1))}
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps(kept, indent=1))
            new.replace(self._file)

    def _kept(self) -> dict[str, tuple[int, float]]:
        try:
            return {
                key: (int(states), float(seconds))
                for key, (states, seconds) in json.loads(self._file.read_text()).items()
            }
        except FileNotFoundError:
            return {}


def fingerprint(configuration: Configuration) -> str:
    """A digest of all that TLC's answer depends on; modules of `spec/` extend only those that come with TLC."""
    definitions, text = configuration.texts()
    parts = [SHA256, configuration.module, (SPEC / f"{configuration.module}.tla").read_text(), *definitions, text]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
