"""The Parquet files of a bin, staged as they grow: each of them whole, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from compactor.core.errors import ObjectChanged, ObjectNotFound, StoreUnavailable
from compactor.core.ports import ObjectStore, ObjectWriter
from compactor.engines.kernel import Kernel
from compactor.ledger.sizing import closes_file


class _UnfinishedError(Exception):
    """A file was still open when nobody was there any more to finish it."""


class BinOutputs:
    """The output files of one pass over a bin. A context: a file that is not finished at its end is abandoned.

    Args:
        store: Where to write.
        kernel: What makes the bytes.
        name: How the URIs begin; no other pass has the same.
        target_file_bytes: How large a file should be.

    Attributes:
        uris: Of the files that were begun, in their order.
        finished_bytes: The length of those that are finished.
    """

    def __init__(self, store: ObjectStore, kernel: Kernel, name: str, target_file_bytes: int) -> None:
        self.uris: list[str] = []
        self.finished_bytes = 0
        self._store = store
        self._kernel = kernel
        self._name = name
        self._target_file_bytes = target_file_bytes
        self._current_bytes = 0
        self._writer: ObjectWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            error = error or _UnfinishedError()
            self._writer.__exit__(type(error), error, trace)

    def flush(self, done: float) -> None:
        """Write what the kernel has completed, and end the file where it is as large as it should be.

        Args:
            done: The share of the input that has been read.
        """
        self._write(self._kernel.take())
        if done and closes_file(self._kernel.output_bytes, self.finished_bytes, done, self._target_file_bytes):
            self.finish()

    def finish(self) -> None:
        """End the open file, if there is one.

        Raises:
            StoreUnavailable: It could not be written.
        """
        self._write(self._kernel.finish_output())
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with _writing(self.uris[-1]):
                writer.__exit__(None, None, None)
            self.finished_bytes += self._current_bytes
            self._current_bytes = 0

    def _write(self, data: bytes) -> None:
        if not data:
            return
        if self._writer is None:
            uri = f"{self._name}{len(self.uris):03d}.parquet"
            with _writing(uri):
                self._writer = self._store.writer(uri).__enter__()
            self.uris.append(uri)
        with _writing(self.uris[-1]):
            self._writer.write(data)
        self._current_bytes += len(data)


@contextmanager
def _writing(uri: str) -> Iterator[None]:
    """An output that cannot be had says nothing about the input that is being read."""
    try:
        yield
    except (ObjectNotFound, ObjectChanged) as exc:
        raise StoreUnavailable(f"{uri}: could not be written: {exc}") from exc
