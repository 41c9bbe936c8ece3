"""Remembers in a SQLite file which manifests of closed dates name which files. A cache, which may be lost."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from compactor.adapters.local.sqlite.seen_files import seen_rows
from compactor.core.layout import ManifestKey, is_text
from compactor.manifests.fates.summarised_files import Known, Shorter
from compactor.manifests.file_search import Naming

_OF_NAME = "SELECT date, id FROM named JOIN manifests ON number = manifest WHERE uri = ?"
_OF_VERSION = "SELECT date, id FROM named JOIN manifests ON number = manifest WHERE version = ?"
_SHORTER = "SELECT uri, etag, date, id FROM named JOIN manifests ON number = manifest WHERE left > 0 AND left <= ?"


@dataclass(frozen=True, slots=True)
class LocalSummarisedFiles:
    """A `compactor.manifests.fates.summarised_files.SummarisedFiles`.

    Attributes:
        path: The SQLite file, the one of `LocalSeenFiles`.
    """

    path: str

    def known(self) -> Known | None:
        """How far it reaches; None if it cannot be read or written."""
        if not Path(self.path).exists():
            return Known(0, "")  # a dry run makes no file
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            found = rows.execute("SELECT place, fingerprint FROM reached").fetchone()
            return Known(0, "") if found is None else Known(*found)
        return None

    def forget(self) -> None:
        """Forget everything."""
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            for table in ("named", "manifests", "reached"):
                rows.execute(f"DELETE FROM {table}")  # noqa: S608 - names of this module

    def add(self, namings: Sequence[Naming]) -> bool:
        """Remember files; False if they cannot be written."""
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            for key in dict.fromkeys((each.date, each.manifest_id) for each in namings):
                rows.execute("INSERT OR IGNORE INTO manifests (date, id) VALUES (?, ?)", key)
            rows.executemany(
                "INSERT OR REPLACE INTO named SELECT :uri, :etag, number, :version, :size, CASE WHEN EXISTS "
                "(SELECT 1 FROM passed WHERE uri = :uri AND etag = :etag) THEN 0 ELSE :size END "
                "FROM manifests WHERE date = :date AND id = :id",
                chain.from_iterable(map(_rows, namings)),
            )
            return True
        return False

    def reach(self, known: Known) -> None:
        """Declare that all files of a summary were added, unless another process has forgotten those before it."""
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            before = rows.execute("SELECT place FROM reached").fetchone() or (0,)
            if before[0] == known.place - 1:
                rows.execute("DELETE FROM reached")
                rows.execute("INSERT INTO reached VALUES (?, ?)", known)

    def naming(self, uris: Iterable[str], versions: Iterable[str]) -> set[ManifestKey] | None:
        """The manifests that name one of these files, or one of these versions; None if it cannot be read."""
        if not Path(self.path).exists():
            return set()
        with suppress(sqlite3.Error, OSError), seen_rows(self.path) as rows:
            found = [rows.execute(_OF_NAME, (uri,)).fetchall() for uri in map(_kept, uris)]
            found += [rows.execute(_OF_VERSION, (_number(version),)).fetchall() for version in versions]
            return {ManifestKey(*key) for keys in found for key in keys}
        return None

    def shorter(self, size_bytes: int) -> Iterator[Shorter]:
        """The versions that are no longer and were not passed over."""
        if not Path(self.path).exists():
            return
        try:
            with seen_rows(self.path) as rows:
                for uri, etag, date, manifest_id in rows.execute(_SHORTER, (size_bytes,)):
                    yield Shorter(uri, etag, ManifestKey(date, manifest_id))
        except (sqlite3.Error, OSError) as exc:
            raise LookupError(self.path) from exc


def _rows(naming: Naming) -> Iterator[dict[str, object]]:
    """What is remembered of a file; of a range also under the name of the version that it continues."""
    has_rows = naming.state == "compacted" and naming.digest
    etag = naming.etag or ""
    row = {
        "uri": _kept(naming.uri),
        "etag": etag,
        "version": _number(etag),
        "size": naming.size_bytes if has_rows else 0,
        "date": naming.date,
        "id": naming.manifest_id,
    }
    yield row
    if naming.range is not None and naming.range.continues != naming.uri:
        yield {**row, "uri": _kept(naming.range.continues), "size": 0}


def _kept(uri: str) -> str:
    """A name as SQLite keeps it. Python decodes other bytes of a local name to what is no text."""
    return uri if is_text(uri) else uri.encode(errors="surrogatepass").decode("latin-1")


def _number(version: str) -> int:
    """What stands for a version in the index; those of two versions may be the same."""
    return int.from_bytes(hashlib.blake2b(version.encode(), digest_size=8).digest(), "big", signed=True)
