"""The kernel in Rust."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from compactor.adapters.local.native.module import native_module
from compactor.core.documents.changes import GrokRules
from compactor.core.errors import StagingError
from compactor.core.inputs.record_place import RecordPlace
from compactor.engines.engine import RowPlan
from compactor.engines.native.kernel import Kernel, RefusedPlace
from compactor.ndjson.grok import Decoded, LineDecoder
from compactor.ndjson.kinds.element_splitting import MAX_HELD, ElementBlock, Fault, Refusal, Scanner
from compactor.schema.column_types import ColumnType
from compactor.schema.field_ids import METADATA_IDS
from compactor.schema.schema import Column, metadata_names

if TYPE_CHECKING:
    from compactor.ops.verify.native_sums import DigestKernel


def expanded(pattern: str, definitions: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """The regular expression for a pattern.

    Args:
        pattern: May use the common patterns and the definitions.
        definitions: Patterns by name; they override common ones.

    Returns:
        The expression; and the key of each of its named groups, with its type in the pattern, if any.

    Raises:
        ValueError: The pattern is invalid; the message says why.
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
    """How to decode lines by rules, as a value exchanged between driver and executors."""

    rules: GrokRules

    def open(self) -> LineDecoder:
        """This thread's decoder: threads that share one were measured to wait for each other."""
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
        raise StagingError(f"the native decoder: {exc}; expected it to accept this commit's rules") from exc


FED_BYTES = 256 * 1024  # fit the CPU cache


class _NativeScanner:
    def __init__(self, place: RecordPlace, max_bytes: int, block_bytes: int) -> None:
        self._native = native_module()
        keep = [(key, orjson.dumps(key)) for key in place.keep]
        self._scanner = self._native.ElementScanner(list(place.steps), keep, max_bytes, block_bytes, MAX_HELD)

    @property
    def is_open(self) -> bool:
        return bool(self._scanner.is_open)

    def feed(self, piece: bytes) -> Iterator[ElementBlock | Refusal | Fault]:
        for at in range(0, len(piece), FED_BYTES):
            yield from self._found(partial(self._scanner.feed, piece, at, min(len(piece), at + FED_BYTES)))

    def finish(self) -> Iterator[ElementBlock | Refusal | Fault]:
        return self._found(self._scanner.finish)

    def _found(self, work: Callable[[], None]) -> Iterator[ElementBlock | Refusal | Fault]:
        try:
            work()
            while (found := self._scanner.take()) is not None:
                block, refusal, fault = found
                yield block or (Refusal(*refusal) if refusal else Fault(*fault))
        except self._native.KernelError as exc:
            raise StagingError(f"the native scanner: {exc}; expected it to read any bytes") from exc


def native_scanner(place: RecordPlace, max_bytes: int, block_bytes: int) -> Scanner:
    """A scanner of elements in Rust.

    Raises:
        StagingError: The module is not installed.
    """
    return _NativeScanner(place, max_bytes, block_bytes)


T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_MODULE_OF_PANICS = "pyo3_runtime"
"""The module of the exception that a panic raises. Python cannot import it."""


@dataclass(frozen=True, slots=True)
class _KeyPlan:
    """What to do with keys without a column. The module reads these fields by name."""

    rescues_unknown: bool
    refused: list[str]
    max_keys: int
    max_key_characters: int


@dataclass(frozen=True, slots=True)
class _Column:
    """An output column. The module reads these fields by name.

    Attributes:
        field_id: Its id in tables; 0 if it has none.
        role: `key`, `rescued`, `source`, `text`, `timestamp` or `date`.
        text: The key, or every row's value in a `text` column.
        micros: Every row's value in a `timestamp` column, in microseconds since 1970.
        days: Every row's value in a `date` column, in days since 1970.
    """

    name: str
    field_id: int
    role: str
    text: str = ""
    micros: int = 0
    days: int = 0
    column_type: ColumnType | None = None


class NativeKernel:
    """`compactor.engines.native.kernel.Kernel` in Rust; a `StagingError` if it rejects the plan.

    It releases Python's global lock while it works. A module from a different release is refused, too.

    Args:
        threads: Rows are encoded in another thread while this process has fewer kernels; 1 for never.
    """

    def __init__(self, plan: RowPlan, *, threads: int = 2) -> None:
        native = self._native = native_module()
        limits = plan.key_limits
        keys = _KeyPlan(
            plan.rescues_unknown, sorted(plan.schema.retired_keys), limits.max_keys, max(0, limits.max_key_characters)
        )
        sizes = (plan.held_bytes, plan.pages_bytes)
        new_writer = partial(native.BinWriter, _columns(plan), plan.compression, keys, *sizes, threads)
        try:
            self._writer: Kernel = self._call(new_writer)
        except (ValueError, TypeError) as exc:
            raise StagingError(f"the native kernel: {exc}; expected it to accept this release's plan") from exc

    @property
    def output_bytes(self) -> int:
        return self._call(lambda: self._writer.output_bytes)

    @property
    def lacks_columns(self) -> bool:
        return self._call(lambda: self._writer.lacks_columns)

    @property
    def rescued_values(self) -> int:
        return self._call(lambda: self._writer.rescued_values)

    def begin_file(self, source_uri: str) -> None:
        self._call(partial(self._writer.begin_file, source_uri))

    def read(self, block: bytes) -> tuple[int, int, list[RefusedPlace]]:
        return self._call(partial(self._writer.read, block))

    def withdraw_file(self) -> bool:
        return self._call(self._writer.withdraw_file)

    def end_file(self) -> tuple[list[str], bool]:
        return self._call(self._writer.end_file)

    def take(self) -> bytes:
        return self._call(self._writer.take)

    def finish_output(self) -> None:
        self._call(self._writer.finish_output)

    def _call(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except self._native.KernelError as exc:
            raise StagingError(f"the native kernel: {exc}; expected it to accept what inspection accepts") from exc
        except MemoryError as exc:
            raise StagingError(
                f"the native kernel: out of memory for {exc or 'its written bytes'}; expected room for the "
                "longest line several times over, in addition to 100 MB per task"
            ) from exc
        except BaseException as exc:
            # Callers do not expect a panic, which would end the whole process.
            if type(exc).__module__ != _MODULE_OF_PANICS:
                raise
            raise StagingError(f"the native kernel failed: {exc}") from exc


def digest_kernel(columns: Mapping[str, ColumnType]) -> "DigestKernel":
    """A `DigestKernel` for rows with these columns, by key.

    Raises:
        StagingError: The module cannot be used.
    """
    found: DigestKernel = native_module().RowSums(list(columns.items()))
    return found


def _columns(plan: RowPlan) -> list[_Column]:
    chosen = metadata_names(plan.metadata_columns)
    return [*[_metadata_column(name, plan) for name in chosen], *map(_column, plan.schema.columns)]


def _metadata_column(name: str, plan: RowPlan) -> _Column:
    field_id = METADATA_IDS[name]
    match name:
        case "_source_file":
            return _Column(name, field_id, "source")
        case "_processed_at":
            micros = (plan.processed_at - _EPOCH) // timedelta(microseconds=1)
            return _Column(name, field_id, "timestamp", micros=micros)
        case "_manifest_id":
            return _Column(name, field_id, "text", text=plan.manifest_id)
    return _Column(name, field_id, "date", days=(plan.date - _EPOCH.date()).days)


def _column(column: Column) -> _Column:
    if column.key is None:
        return _Column(column.name, column.field_id, "rescued")
    return _Column(column.name, column.field_id, "key", column.key, column_type=column.column_type)
