"""Creates the reader of text lines from the configured pattern."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compactor.adapters.local.native.kernel import NativeGrok, expanded
from compactor.adapters.local.native.module import why_not_installed
from compactor.core.documents.changes import GrokRules
from compactor.core.errors import SettingsError
from compactor.schema.schema import RESERVED_NAMES
from compactor.settings.settings import Settings

_TYPES = {
    "": "",
    "string": "string",
    **dict.fromkeys(("byte", "short", "int", "long"), "long"),
    **dict.fromkeys(("float", "double"), "double"),
    "boolean": "boolean",
}
"""Column types by capture type. An empty one leaves the type to the schema file."""


@dataclass(frozen=True, slots=True)
class GrokReader:
    """How lines of text become records.

    Attributes:
        decoder: Decodes them in any process.
        types: Each key's column type, in the order of the pattern; empty if the pattern gives none.
    """

    decoder: NativeGrok
    types: dict[str, str]

    @property
    def rules(self) -> GrokRules:
        return self.decoder.rules


def grok_reader(settings: Settings) -> GrokReader | None:
    """Create a stream's reader of lines; None if they are JSON.

    Raises:
        SettingsError: The pattern has faults, or its compiler is not installed.
    """
    grok = settings.grok
    if grok is None:
        return None
    if why := why_not_installed():
        raise SettingsError([f'input.format: "grok": {why} -> install it, as both engines need it for patterns'])
    try:
        regex, captures = expanded(grok.pattern, grok.patterns)
    except ValueError as exc:
        raise SettingsError([f"input.grok: {exc}"]) from exc
    if faults := list(_faults(captures)):
        raise SettingsError(faults)
    rules = GrokRules(regex=regex, keys=tuple(key for key, _ in captures), max_steps=grok.max_steps)
    return GrokReader(NativeGrok(rules), {key: _TYPES[kind] for key, kind in captures})


def _faults(captures: Iterable[tuple[str, str]]) -> Iterator[str]:
    for key, kind in dict(captures).items():
        if key.lower() in RESERVED_NAMES:
            yield f"input.grok: a capture is named {key} -> expected a name that is not reserved"
        if kind not in _TYPES:
            yield f"input.grok: {key} is of type {kind} -> expected {', '.join(filter(None, _TYPES))}, or none"
