"""Where an attempt writes its row files: in its staging, or in place, under their final names in the output."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from compactor.core.errors import ObjectChanged, ObjectNotFound, StoreUnavailable
from compactor.core.ports import ObjectStore, ObjectWriter, copy_through


@contextmanager
def writing(uri: str) -> Iterator[None]:
    """Report a failed write as a store failure, so that it is not blamed on the input file being read."""
    try:
        yield
    except (ObjectNotFound, ObjectChanged) as exc:
        raise StoreUnavailable(f"{uri}: could not be written: {exc}") from exc


_CHUNK_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RowsPlace:
    """An attempt's folder.

    Attributes:
        in_place: Files are never copied, because a table lists them where they are. So each file is create-only.
    """

    folder: str
    in_place: bool = False
    ending: str = ".parquet"

    @classmethod
    def final(cls, folder: str, compression: str) -> "RowsPlace":
        """A folder in the output, where readers see the files."""
        return cls(folder, in_place=True, ending=f".{compression}.parquet")

    def uri(self, name: str, partition: str = "") -> str:
        """A file's place.

        Args:
            name: Its name without a suffix, unique within the attempt.
            partition: The folders of its rows' partition; only used in place.
        """
        return f"{self.folder}{partition if self.in_place else ''}{name}{self.ending}"

    def writer(self, store: ObjectStore, uri: str) -> AbstractContextManager[ObjectWriter]:
        """See `ObjectStore.writer` and `ObjectStore.new_writer`."""
        return store.new_writer(uri) if self.in_place else store.writer(uri)

    def put(self, store: ObjectStore, uri: str, data: bytes) -> None:
        """Write a file here.

        Raises:
            StoreUnavailable: It could not be written.
        """
        if not self.in_place:
            store.put(uri, data)
        elif not store.create(uri, data):  # guard: a partition's file written in place overwrites no other
            raise StoreUnavailable(f"{uri}: another object exists; expected none")

    def upload(self, store: ObjectStore, uri: str, path: Path) -> None:
        """Write a file here with the content of a local file."""
        if not self.in_place:
            store.upload(uri, path)
            return
        with path.open("rb") as file, self._new(store, uri) as writer:
            while data := file.read(_CHUNK_BYTES):
                writer.write(data)

    def take(self, store: ObjectStore, source: str, uri: str) -> None:
        """Copy a file to this place. In place, its bytes pass through this process: not every store can copy an object.

        Raises:
            ObjectNotFound: There is no `source`.
        """
        if not self.in_place:
            store.copy(source, uri)
        else:
            copy_through(store, source, self._new(store, uri))

    @contextmanager
    def _new(self, store: ObjectStore, uri: str) -> Iterator[ObjectWriter]:
        with writing(uri), store.new_writer(uri) as writer:
            yield writer
