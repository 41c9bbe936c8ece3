"""Reads the state that table upkeep needs with pyiceberg, and removes files from the metadata folder."""

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from gzip import BadGzipFile

from pyarrow.fs import FileInfo, FileSelector, FileType
from pyiceberg.exceptions import ValidationError
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot

from compactor.core.map_ordered import map_ordered
from compactor.table.upkeep import MetadataFile, TableFolder, TableHistory, TableRef, TableSnapshot

_IS_METADATA = (".metadata.json", ".metadata.json.gz")
_KEEPS_ALL = "gc.enabled"
"""Set to false by another catalog with the same table. Java's own upkeep respects it, too."""

_NO_TIME = datetime.max.replace(tzinfo=UTC)


def history_of(table: Table) -> TableHistory:
    """A table's snapshots and references, and the current snapshot's manifests."""
    metadata, current = table.metadata, table.current_snapshot()
    manifests = current.manifests(table.io) if current else []
    properties = TableProperties
    default = str(properties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT)
    asked = int(metadata.properties.get(properties.MAX_SNAPSHOT_AGE_MS, 0))
    return TableHistory(
        snapshots=tuple(
            TableSnapshot(each.snapshot_id, each.parent_snapshot_id, _time(each)) for each in metadata.snapshots
        ),
        refs=tuple(_ref(each, asked) for each in metadata.refs.values()),
        manifest_bytes=tuple(each.manifest_length for each in manifests if each.content == ManifestContent.DATA),
        manifest_target_bytes=int(metadata.properties.get(properties.MANIFEST_TARGET_SIZE_BYTES, default)),
        keeps_all=metadata.properties.get(_KEEPS_ALL, "true").lower() == "false",
    )


def files_of_all_snapshots(table: Table) -> Iterator[str]:
    """The data files of all snapshots; repeated for files in several manifests."""
    lists = {each.manifest_list: each for each in table.metadata.snapshots}
    manifests = dict[str, ManifestFile]()
    for found in map_ordered(lambda each: each.manifests(table.io), lists.values()):
        manifests.update((each.manifest_path, each) for each in found if each.content == ManifestContent.DATA)

    def uris(manifest: ManifestFile) -> list[str]:
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        return [entry.data_file.file_path for entry in entries]

    for files in map_ordered(uris, manifests.values()):
        yield from files


def listed(table: Table) -> tuple[MetadataFile, ...] | None:
    """The files in a table's metadata folder; None if this client cannot list them."""
    if not isinstance(table.io, PyArrowFileIO):
        return None
    scheme, netloc, path = table.io.parse_location(_folder(table), table.io.properties)
    found: list[FileInfo] = table.io.fs_by_scheme(scheme, netloc).get_file_info(
        FileSelector(path, allow_not_found=True)
    )
    files = (each for each in found if each.type == FileType.File)
    return tuple(MetadataFile(each.base_name, each.size, each.mtime or _NO_TIME) for each in files)


def folder_of(table: Table, files: tuple[MetadataFile, ...], without: Collection[int]) -> TableFolder:
    """Find which of these files the table needs, or a dropped table whose metadata is among them.

    The table was read after its files were listed. The snapshots in `without` count as expired.
    """
    own, without = {_name(table.metadata_location), *_directly_named(table.metadata)}, frozenset(without)
    lists = {each.manifest_list: each for each in table.metadata.snapshots if each.snapshot_id not in without}
    named = own | set(_named_by(table.io, lists.values()))
    foreign = dict[str, Snapshot]()
    for file in files:
        if file.name.endswith(_IS_METADATA) and file.name not in own:
            found = _metadata(table.io, f"{_folder(table)}/{file.name}")
            if found is None or found.table_uuid != table.metadata.table_uuid:
                named.add(file.name)
            # guard: the files of a dropped table stay
            if found is not None and found.table_uuid != table.metadata.table_uuid:
                named.update(_directly_named(found))
                foreign.update({each.manifest_list: each for each in found.snapshots})
    named.update(_named_by(table.io, foreign.values(), lacks_some=True))
    current = table.current_snapshot()
    return TableFolder(files, frozenset(named), _time(current) if current else None)


def removed(table: Table, names: Iterable[str]) -> int:
    """Remove files from the folder; return how many existed."""
    folder = _folder(table)

    def remove(name: str) -> bool:
        try:
            table.io.delete(f"{folder}/{name}")
        except FileNotFoundError:
            return False
        return True

    return sum(map_ordered(remove, names))


def _folder(table: Table) -> str:
    return table.location_provider().metadata_path


def _directly_named(metadata: TableMetadata) -> Iterator[str]:
    """Yield the files that metadata names itself, without the snapshots' files."""
    for entry in metadata.metadata_log:
        yield _name(entry.metadata_file)
    for statistics in (*metadata.statistics, *metadata.partition_statistics):
        yield _name(statistics.statistics_path)


def _named_by(io: FileIO, snapshots: Iterable[Snapshot], *, lacks_some: bool = False) -> Iterator[str]:
    """Yield the snapshots' files, except data files. With `lacks_some`, a manifest list may be missing."""

    def names(snapshot: Snapshot) -> list[str]:
        try:
            return [_name(snapshot.manifest_list), *(_name(each.manifest_path) for each in snapshot.manifests(io))]
        except FileNotFoundError:
            if not lacks_some:
                raise
            return []

    for found in map_ordered(names, snapshots):
        yield from found


def _metadata(io: FileIO, uri: str) -> TableMetadata | None:
    """The metadata in a file; None if it has none or is missing."""
    try:
        return FromInputFile.table_metadata(io.new_input(uri))
    except (ValidationError, ValueError, EOFError, BadGzipFile, FileNotFoundError):
        return None


def _ref(ref: SnapshotRef, asked_milliseconds: int) -> TableRef:
    milliseconds = max(ref.max_snapshot_age_ms or 0, asked_milliseconds)
    is_branch = ref.snapshot_ref_type == SnapshotRefType.BRANCH
    return TableRef(ref.snapshot_id, is_branch, timedelta(milliseconds=milliseconds), ref.min_snapshots_to_keep or 1)


def _time(snapshot: Snapshot) -> datetime:
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)


def _name(location: str) -> str:
    """A file's name, however its folder is spelled. It has a random part, so names are unique."""
    return location.rpartition("/")[2]
