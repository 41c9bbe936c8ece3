"""Grok in Rust: makes rules of a pattern, and decodes lines by rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import get_ident
from typing import Any

from compactor.adapters.local.native.kernel import native_module
from compactor.core.documents.grok_rules import GrokRules
from compactor.core.errors import StagingError
from compactor.ndjson.grok import Decoded, LineDecoder


def expanded(pattern: str, definitions: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """The expression that a pattern stands for.

    Args:
        pattern: It may use the common patterns and the definitions.
        definitions: Patterns by name. They come before common ones of the same name.

    Returns:
        The expression; and the key of each of its named groups, with the type that the pattern gives it, or nothing.

    Raises:
        ValueError: What is wrong with the pattern.
        StagingError: The module is not installed, or has a fault.
    """
    native = native_module()
    try:
        regex, captures = native.expanded(pattern, dict(definitions))
    except native.KernelError as exc:
        raise ValueError(f"the compiler has a fault: {exc}") from exc
    return regex, captures


@dataclass(frozen=True, slots=True)
class NativeGrok:
    """How to decode lines by rules, as a value that driver and executors exchange."""

    rules: GrokRules

    def open(self) -> LineDecoder:
        """The decoder of this thread: threads that share one were measured to wait for each other."""
        return _decoder(self.rules.regex, self.rules.keys, self.rules.max_steps, get_ident())


class _NativeDecoder:
    def __init__(self, native: Any, regex: str, keys: tuple[str, ...], max_steps: int) -> None:
        self._native = native
        self._decoder = native.LineDecoder(regex, list(keys), max_steps)

    def decode(self, block: bytes, start: int) -> Decoded:
        try:
            return Decoded(*self._decoder.decode(block, start))
        except self._native.KernelError as exc:
            raise StagingError(f"the native decoder: {exc}; expected it to decode any line") from exc


@lru_cache(maxsize=32)
def _decoder(regex: str, keys: tuple[str, ...], max_steps: int, _thread: int) -> LineDecoder:
    try:
        return _NativeDecoder(native_module(), regex, keys, max_steps)
    except ValueError as exc:
        raise StagingError(f"the native decoder: {exc}; expected it to accept the rules of this commit") from exc
