"""Reads an S3 Inventory from its store: its manifest.json, and each data file, verified by MD5."""

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from compactor.core.errors import InventoryError, ObjectNotFound, ScratchFull
from compactor.core.layout import base_name
from compactor.core.ports import ObjectStore
from compactor.sources.inventory.document import DataFile, Inventory, parse_inventory
from compactor.sources.inventory.rows import InventoryRow

_RANGE_BYTES = 8 * 1024 * 1024
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class InventoryReader:
    """Reads inventories."""

    store: ObjectStore

    def open(self, uri: str) -> Inventory:
        """Read an inventory's manifest.json, and verify it by manifest.checksum.

        Raises:
            InventoryError: It is missing, damaged, or not an inventory.
        """
        if base_name(uri) != _NAME:
            raise InventoryError(f"{uri}: expected the {_NAME} of an S3 Inventory, next to its manifest.checksum")
        info = self.store.stat(uri)
        if info is None:
            raise InventoryError(f"{uri}: no such object; expected the {_NAME} of an S3 Inventory")
        if info.size_bytes > MAX_DOCUMENT_BYTES:
            raise InventoryError(f"{uri}: {info.size_bytes:,} bytes; expected at most {MAX_DOCUMENT_BYTES:,}")
        data = self.store.read(uri, etag=info.etag)
        self._verify(uri, data)
        return parse_inventory(data, uri)

    def _verify(self, uri: str, data: bytes) -> None:
        checksum = f"{uri.removesuffix(_NAME)}manifest.checksum"
        try:
            expected = self.store.read(checksum).decode("ascii", "replace").strip()
        except ObjectNotFound as exc:
            raise InventoryError(f"{checksum}: no such object; S3 writes it last: wait, or copy it") from exc
        found = hashlib.md5(data, usedforsecurity=False).hexdigest()
        if found != expected.lower():
            raise InventoryError(f"{uri}: its MD5 is {found}; expected that of manifest.checksum")

    def rows(self, inventory: Inventory) -> Iterator[InventoryRow]:
        """Yield the rows of all data files, one file after the other, each verified before its first row.

        Raises:
            InventoryError: A file is missing, is not the one that S3 wrote, or has a row for a different bucket.
        """
        from compactor.sources.inventory.tables import read_rows  # noqa: PLC0415 - pyarrow is slow to load

        for each in inventory.files:
            with self._fetched(each) as file:
                for row in read_rows(file, inventory.file_format, inventory.columns, each.uri):
                    if row.bucket != inventory.source_bucket:
                        raise InventoryError(
                            f"{each.uri}: lists an object in another bucket; expected all in {inventory.source_bucket}"
                        )
                    yield row

    @contextmanager
    def _fetched(self, file: DataFile) -> Iterator[IO[bytes]]:
        """A verified local copy without a name, which disappears with the process."""
        info = self.store.stat(file.uri)
        if info is None:
            raise InventoryError(
                f"{file.uri}: no such object; expected each data file of manifest.json (S3 writes to other names "
                "if the destination prefix ends in /)"
            )
        if info.size_bytes != file.size_bytes:
            raise InventoryError(f"{file.uri}: {info.size_bytes:,} bytes; expected {file.size_bytes:,}")
        with tempfile.TemporaryFile() as copy:
            digest = self._copied(file, info.etag, copy)
            if digest != file.md5:
                raise InventoryError(f"{file.uri}: its MD5 is {digest}; expected {file.md5}")
            yield copy

    def _copied(self, file: DataFile, etag: str, copy: IO[bytes]) -> str:
        digest = hashlib.md5(usedforsecurity=False)
        for start in range(0, file.size_bytes, _RANGE_BYTES):
            data = self.store.read_range(file.uri, start, _RANGE_BYTES, etag=etag)
            digest.update(data)
            try:
                copy.write(data)
                copy.flush()
            except OSError as exc:
                place, needed = tempfile.gettempdir(), f"{file.size_bytes:,} bytes"
                raise ScratchFull(
                    f"{place}: {exc.strerror}; expected {needed} there, or set TMPDIR to a different place"
                ) from exc
        copy.seek(0)
        return digest.hexdigest()
