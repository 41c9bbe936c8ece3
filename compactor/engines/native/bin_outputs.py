"""The Parquet files of a bin, staged as they grow: each of them becomes visible whole, or not at all."""

from contextlib import ExitStack
from typing import Self

from compactor.core.ports import ObjectStore, ObjectWriter
from compactor.engines.native.kernel import Kernel
from compactor.engines.rows_place import RowsPlace
from compactor.engines.staging_writes import writing
from compactor.ledger.file_counts import closes_file


class BinOutputs:
    """The output files of one pass over a bin. A context manager that aborts what was not committed.

    Args:
        store: Receives the files.
        kernel: Makes their bytes.
        place: Where they go.
        name: The beginning of their names, which no other pass uses.
        target_file_bytes: The size of a file at which the next one begins.

    Attributes:
        uris: The files begun so far, in order.
        finished_bytes: The total length of the finished ones.
    """

    def __init__(self, store: ObjectStore, kernel: Kernel, place: RowsPlace, name: str, target_file_bytes: int) -> None:
        self.uris: list[str] = []
        self.finished_bytes = 0
        self._store = store
        self._kernel = kernel
        self._place = place
        self._name = name
        self._target_file_bytes = target_file_bytes
        self._current_bytes = 0
        self._length = 0  # of the open file, and what is not yet written of it
        self._writer: ObjectWriter | None = None
        self._open_file = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def flush(self, done: float) -> None:
        """Write what the kernel has completed, and finish the file if it has reached its size.

        Args:
            done: The share of the input that has been read, from 0 to 1.
        """
        self._write_completed()
        length = self._kernel.output_bytes
        if length == self._length:
            return  # rows are held back: only when they are written do both lengths tell of the same rows
        step, self._length = max(0, length - self._length), length
        # The kernel leaves out the last batch of rows, which is likely to be as long as the one before.
        if done and closes_file(length + step, self.finished_bytes, done, self._target_file_bytes, step_bytes=step):
            self.commit()

    def commit(self) -> None:
        """Finish the open file, if there is one.

        Raises:
            StoreUnavailable: It could not be written.
        """
        self._kernel.finish_output()
        self._write_completed()
        if self._writer is not None:
            with writing(self.uris[-1]):
                self._close()
            self.finished_bytes += self._current_bytes
            self._current_bytes = self._length = 0

    def abort(self) -> None:
        """Discard the open file, if there is one."""
        if self._writer is not None:
            self._writer.abort()
            self._close()

    def _close(self) -> None:
        self._writer = None
        self._open_file.close()

    def _write_completed(self) -> None:
        while data := self._kernel.take():
            self._write(data)

    def _write(self, data: bytes) -> None:
        if self._writer is None:
            uri = self._place.uri(f"{self._name}{len(self.uris):03d}")
            with writing(uri):
                self._writer = self._open_file.enter_context(self._place.writer(self._store, uri))
            self.uris.append(uri)
        with writing(self.uris[-1]):
            self._writer.write(data)
        self._current_bytes += len(data)
