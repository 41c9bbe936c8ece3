"""Finds out before the work, as far as that can be found out on a local disk, what would stop it at its end."""

import os
from pathlib import Path

from compactor.core.errors import SettingsError
from compactor.core.layout import Layout, base_name, folder, is_data, is_s3
from compactor.core.ports import ObjectStore
from compactor.settings.compact_paths import CompactPaths


def check_folders(paths: CompactPaths) -> None:
    """Make sure that there is a folder to read, and that the others can be written. On S3 the store tells.

    Raises:
        SettingsError: With the first fault.
    """
    _check_source(paths.source)
    _check_writable("DST", paths.output)
    _check_writable("--state", paths.home)


def linked_folders(source: str) -> int:
    """How many folders below a local one are reached by a symbolic link alone: the store lists none of their files."""
    if is_s3(source):
        return 0
    # It names links to folders among the folders, and does not follow them.
    return sum(os.path.islink(os.path.join(at, name)) for at, names, _ in os.walk(source) for name in names)  # noqa: PTH114, PTH118


def check_rows_are_known(paths: CompactPaths, layout: Layout, store: ObjectStore) -> None:
    """Make sure, for a first call, that no rows are there already: it would make them once more.

    Raises:
        SettingsError: There are some, and nothing is on record.
    """
    listed = store.list(folder(paths.output))
    rows = next((info.uri for info in listed if is_data(info.uri) and layout.output_owner(info.uri)), None)
    # In this order: what another first call has put there meanwhile was on record before.
    if rows is not None and next(iter(store.list(layout.ledger_folder)), None) is None:
        found = f"DST: {paths.output}: holds rows ({base_name(rows)}) that {paths.home} knows nothing of"
        raise SettingsError([f"{found} -> expected an empty folder, or by --state the place that goes with it"])


def _check_source(source: str) -> None:
    if is_s3(source) or Path(source).is_dir():
        return
    if Path(source).exists():
        apart = f"mkdir one && ln {source} one/"
        raise SettingsError(
            [f"SRC: {source}: is a file -> expected the folder it is in, or one with it alone: {apart}"]
        )
    raise SettingsError([f"SRC: {source}: there is no such folder -> expected one with NDJSON files"])


def _check_writable(name: str, place: str) -> None:
    if is_s3(place):
        return
    path = Path(place)
    above = next(each for each in (path, *path.parents) if each.exists())
    if not above.is_dir():
        raise SettingsError([f"{name}: {place}: {above} is a file -> expected a folder, or a place for one"])
    if not os.access(above, os.W_OK | os.X_OK):
        raise SettingsError([f"{name}: {place}: {above} may not be written -> expected to be allowed to"])
